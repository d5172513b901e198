"""What people write to name a build, and what it is taken for."""

from __future__ import annotations

from pathlib import Path

import pytest

from probe.builds.specs import Folder, Git, Installed, Release, parse, release
from probe.errors import UsageError


@pytest.mark.parametrize(
    ("text", "runtime", "wanted", "exact", "every"),
    [
        ("livekit-agents==1.6.5", "python", "livekit-agents==1.6.5", "1.6.5", False),
        ("livekit_agents == 1.6.5", "python", "livekit_agents==1.6.5", "1.6.5", False),
        ("livekit-agents>=1.8", "python", "livekit-agents>=1.8", None, False),
        ("livekit-agents", "python", "livekit-agents", None, False),
        ("livekit-agents~=1.5.0", "python", "livekit-agents~=1.5.0", None, False),
        ("livekit-agents==1.5.*", "python", "livekit-agents==1.5.*", None, True),
        ("livekit-agents[x]==1.6.5", "python", "livekit-agents[x]==1.6.5", "1.6.5", False),
        ("npm:@livekit/agents@1.9.0", "node", "@livekit/agents@1.9.0", "1.9.0", False),
        ("npm:@livekit/agents@v1.9.0", "node", "@livekit/agents@1.9.0", "1.9.0", False),
        ("npm:@livekit/agents", "node", "@livekit/agents@*", None, False),
        ("npm:@livekit/agents@^1.8.0", "node", "@livekit/agents@^1.8.0", None, False),
        ("npm:@livekit/agents@1.8.x", "node", "@livekit/agents@1.8.x", None, True),
    ],
)  # fmt: skip
def test_a_release_is_one_the_newest_that_fits_or_each_of_a_series(
    text: str, runtime: str, wanted: str, exact: str | None, every: bool
) -> None:
    assert parse(text) == Release(text, runtime, wanted, exact, every)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "url", "ref"),
    [
        ("git+https://host.example/a/agents@main", "https://host.example/a/agents", "main"),
        ("https://host.example/agents.git", "https://host.example/agents.git", None),
        ("https://me@host.example/agents@feature/x", "https://me@host.example/agents", "feature/x"),
        ("git@host.example:livekit/agents.git@v1", "git@host.example:livekit/agents.git", "v1"),
        ("ssh://git@host.example/agents@0a1b2c3", "ssh://git@host.example/agents", "0a1b2c3"),
        (
            "https://host.example/agents@livekit-agents@1.6.5",
            "https://host.example/agents",
            "livekit-agents@1.6.5",
        ),
        (
            "livekit-agents @ git+https://host.example/agents@main",
            "https://host.example/agents",
            "main",
        ),
    ],
)  # fmt: skip
def test_a_git_url_ends_where_the_ref_begins(text: str, url: str, ref: str | None) -> None:
    spec = parse(text)
    assert isinstance(spec, Git)
    assert (spec.url, spec.ref) == (url, ref)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:secret@host.example/agents@main", "https://host.example/agents@main"),
        ("git+https://secret@host.example/agents", "git+https://host.example/agents"),
        ("ssh://git@host.example/agents@main", "ssh://git@host.example/agents@main"),
        ("git@host.example:agents@main", "git@host.example:agents@main"),
    ],
)
def test_what_signs_in_to_a_repository_is_not_in_the_build_s_name(text: str, shown: str) -> None:
    spec = parse(text)
    assert isinstance(spec, Git)
    assert spec.text == shown
    assert ("secret" in spec.url) == ("secret" in text)


def test_a_folder_that_is_there_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "agents" / ".git").mkdir(parents=True)
    (tmp_path / "livekit-agents").mkdir()
    monkeypatch.chdir(tmp_path)
    assert parse("agents") == Folder("agents", tmp_path / "agents")
    assert parse("./livekit-agents") == Folder("./livekit-agents", tmp_path / "livekit-agents")
    assert parse("agents@main") == Git("agents@main", str(tmp_path / "agents"), "main")


def test_the_package_s_own_name_is_the_release_even_beside_a_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "livekit-agents").mkdir()
    monkeypatch.chdir(tmp_path)
    assert isinstance(parse("livekit-agents"), Release)


def test_installed_is_the_running_python() -> None:
    assert parse(" installed ") == Installed("installed")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected installed, livekit-agents==VERSION"),
        ("../nowhere", "expected installed, livekit-agents==VERSION"),
        ("livekit==1.0", "expected livekit-agents, found livekit"),
        ("livekit-agents==", "expected a requirement such as livekit-agents==1.6.5"),
        ("livekit-agents==1.6.5; python_version > '3'", "expected no condition"),
        ("livekit-agents @ https://", "expected a git URL after @"),
        ("npm:express@4", "expected npm:@livekit/agents@VERSION, found express"),
        ("npm:", "expected npm:@livekit/agents@VERSION, found nothing"),
        ("https://host.example/agents@", "expected a branch, tag or commit after @"),
        ("https://host.example/agents#egg=x", "and no fragment"),
        (__file__, "expected a folder, found a file"),
        ("~no-such-user/agents", "expected installed, livekit-agents==VERSION"),
        ("a" * 400, "expected installed, livekit-agents==VERSION"),
    ],
)
def test_what_names_no_build_is_wrong_usage_and_says_what_was_expected(
    text: str, said: str
) -> None:
    with pytest.raises(UsageError, match=r"^[^\n]*$") as failure:
        parse(text)
    assert said in str(failure.value)


@pytest.mark.parametrize(
    ("runtime", "text"),
    [("python", "livekit-agents==1.6.5"), ("node", "npm:@livekit/agents@1.6.5")],
)
def test_a_version_by_itself_is_that_release(runtime: str, text: str) -> None:
    assert release(runtime, "1.6.5") == parse(text)  # type: ignore[arg-type]
