"""Environments: made once and whole, as of a build's date, with the user's own uv, npm and git."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from probe.builds import BuildFailed, cache, make, make_all, parse
from probe.builds.cache import Stamp, kept
from probe.builds.releases import newest, since
from probe.builds.specs import Release
from probe.builds.tools import run
from probe.errors import BuildError, ScenarioError
from probe.scenarios.catalogue import CATALOGUE
from probe.scenarios.runner import run_in_child
from probe.sweep import Build
from tests.registry import Registry, serving
from tests.releases import CACHE

AGENTS = {"livekit/agents/__init__.py": "BUILD = 'release'\n"}
NO_NPM = pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm here")
NO_GIT = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")


@pytest.fixture(scope="module")
def registry() -> Registry:
    made = Registry()
    made.python("numpy", "1.0", "2020-01-01")
    made.python("helper", "1.0", "2025-01-01")
    made.python("helper", "2.0", "2025-06-01")
    for version, uploaded in {
        "1.4.0": "2025-02-01", "1.5.0": "2025-03-01", "1.5.1": "2025-03-10", "1.6.0": "2025-07-01",
    }.items():  # fmt: skip
        made.python("livekit-agents", version, uploaded, ["helper"], AGENTS)
    made.python("livekit-agents", "2.0.0b1", "2025-08-01", ["helper"], AGENTS)
    made.python("livekit-agents", "1.3.0", "2025-01-20", ["no-such-helper"], AGENTS)
    made.node("helper", "1.0.0", "2025-01-01")
    made.node("helper", "1.1.0", "2025-06-01")
    for version, uploaded in {
        "1.4.0": "2025-02-01", "1.5.0": "2025-03-01", "1.5.1": "2025-03-10", "1.6.0": "2025-07-01",
        "1.7.0-next.1": "2025-07-02",
    }.items():  # fmt: skip
        made.node("@livekit/agents", version, uploaded, {"helper": "^1.0.0"})
    made.node("@livekit/agents", "1.6.1", "2025-08-01", {"helper": "^1.0.0"})
    return made


@pytest.fixture(scope="module")
def _served(registry: Registry, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with serving(registry, tmp_path_factory.mktemp("tools")) as variables:
        yield variables


@pytest.fixture
def _tools(_served: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in _served.items():
        monkeypatch.setenv(name, value)


def said_by(build: Build, code: str) -> str:
    return subprocess.run(
        [build.python, "-c", code], check=True, capture_output=True, text=True, timeout=60
    ).stdout.strip()


# --- Releases ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_tools")
def test_a_release_gets_the_dependencies_of_its_own_date(tmp_path: Path) -> None:
    old = make(parse("livekit-agents==1.5.0"), tmp_path)
    new = make(parse("livekit-agents>=1.5"), tmp_path)
    assert (old.label, old.as_of) == ("livekit-agents 1.5.0", "2025-03-02T12:00:00Z")
    assert (old.installed["helper"], new.installed["helper"]) == ("1.0", "2.0")
    assert new.label == "livekit-agents 1.6.0"
    assert old.runtime == "python"
    assert said_by(old, "import livekit.agents as a; print(a.BUILD)") == "release"


@NO_NPM
@pytest.mark.usefixtures("_tools")
def test_a_node_release_gets_the_dependencies_of_its_own_date(tmp_path: Path) -> None:
    old = make(parse("npm:@livekit/agents@1.5.0"), tmp_path)
    new = make(parse("npm:@livekit/agents@>=1.5"), tmp_path)
    assert (old.label, old.as_of) == ("@livekit/agents 1.5.0", "2025-03-02T12:00:00Z")
    assert (old.installed["helper"], new.installed["helper"]) == ("1.0.0", "1.1.0")
    assert new.label == "@livekit/agents 1.6.1"
    assert old.runtime == "node"
    assert old.home is not None
    assert (old.home / "node_modules/@livekit/agents/index.js").is_file()


@pytest.mark.usefixtures("_tools")
def test_an_environment_that_is_there_is_used_again_without_asking_anybody(
    tmp_path: Path, registry: Registry
) -> None:
    spec = parse("livekit-agents==1.5.0")
    first = make(spec, tmp_path)
    registry.asked.clear()
    told: list[str] = []
    assert make(spec, tmp_path, told.append) == first
    assert (registry.asked, told) == ([], [])


@pytest.mark.usefixtures("_tools")
def test_an_environment_that_was_broken_is_made_anew(tmp_path: Path) -> None:
    spec = parse("livekit-agents==1.5.0")
    build = make(spec, tmp_path)
    folder = Path(build.python).parents[1]
    (helper,) = folder.glob("lib/python*/site-packages/helper-1.0.dist-info")
    shutil.rmtree(helper)
    assert make(spec, tmp_path) == build
    assert helper.is_dir()
    Path(build.python).unlink()
    assert make(spec, tmp_path) == build
    assert said_by(build, "print('there')") == "there"
    stamp = folder / cache.STAMP
    stamp.write_text("{")
    assert make(spec, tmp_path) == build
    assert json.loads(stamp.read_text())["installed"] == build.installed
    assert [path.name for path in folder.parent.iterdir() if ".tmp-" in path.name] == []


@pytest.mark.usefixtures("_tools")
def test_a_series_is_each_of_its_releases_and_what_fails_stands_in_its_place(
    tmp_path: Path,
) -> None:
    texts = ["livekit-agents==1.5.*", "livekit-agents==1.3.0", "livekit-agents==1.5.1"]
    made = make_all([parse(text) for text in texts], tmp_path)
    assert [one.label for one in made] == [
        "livekit-agents 1.5.0", "livekit-agents 1.5.1", "livekit-agents==1.3.0",
        "livekit-agents 1.5.1 (2)",
    ]  # fmt: skip
    failed = made[2]
    assert isinstance(failed, BuildFailed)
    assert "no-such-helper" in failed.reason
    assert "\n" not in failed.reason
    assert not [*tmp_path.glob("python/*1.3.0*.tmp-*")]


@pytest.mark.usefixtures("_tools")
@pytest.mark.parametrize("text", ["livekit-agents==9.9", "livekit-agents>=1.8,<1.7"])
def test_that_no_release_fits_is_said_as_such(text: str, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"^no release fits livekit-agents"):
        make(parse(text), tmp_path)


@NO_NPM
@pytest.mark.usefixtures("_tools")
def test_that_no_node_release_fits_is_said_as_such(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"^no release fits @livekit/agents@9.9.9$"):
        make(parse("npm:@livekit/agents@9.9.9"), tmp_path)


def test_a_registry_that_was_not_asked_has_not_said_that_no_release_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    with pytest.raises(BuildError, match="was not found in the cache") as failure:
        make(parse("livekit-agents>=1.8"), tmp_path / "cache")
    assert "no release fits" not in str(failure.value)


@pytest.mark.usefixtures("_tools")
def test_a_beta_is_meant_only_by_its_name() -> None:
    def newest_of(text: str) -> str:
        spec = parse(text)
        assert isinstance(spec, Release)
        return newest(spec).version

    assert newest_of("livekit-agents") == "1.6.0"
    assert newest_of("livekit-agents>=1.6") == "1.6.0"
    assert newest_of("livekit-agents==2.0.0b1") == "2.0.0b1"


@pytest.mark.usefixtures("_tools")
def test_releases_are_listed_from_the_first_to_the_last() -> None:
    def versions(*asked: Any, **more: Any) -> list[str]:
        return [one.version for one in since(*asked, **more)]

    assert versions("python", "1.4") == ["1.4.0", "1.5.0", "1.5.1", "1.6.0"]
    assert versions("python", "1.4.1", "1.5.1") == ["1.5.0", "1.5.1"]
    assert versions("python", "1.4", each_minor=True) == ["1.4.0", "1.5.1", "1.6.0"]
    with pytest.raises(BuildError, match="no release"):
        versions("python", "3")


@NO_NPM
@pytest.mark.usefixtures("_tools")
def test_node_releases_are_listed_in_the_same_way_without_betas() -> None:
    def versions(*asked: Any, **more: Any) -> list[str]:
        return [one.version for one in since(*asked, **more)]

    assert versions("node", "1.4") == ["1.4.0", "1.5.0", "1.5.1", "1.6.0", "1.6.1"]
    assert versions("node", "1.4.1", "1.5.1") == ["1.5.0", "1.5.1"]
    assert versions("node", "1.4", each_minor=True) == ["1.4.0", "1.5.1", "1.6.1"]
    with pytest.raises(BuildError, match="no release"):
        versions("node", "3")


# --- Checkouts and what is there -----------------------------------------------------------------


def checkout(folder: Path, text: str = "BUILD = 'mine'\n") -> Path:
    """A repository of the Python package, with a build backend of its own that needs no other."""
    package = folder / "livekit-agents"
    (package / "livekit" / "agents").mkdir(parents=True)
    (package / "livekit" / "agents" / "__init__.py").write_text(text)
    (package / "backend.py").write_text(BACKEND)
    (package / "pyproject.toml").write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
        "[project]\nname = 'livekit-agents'\nversion = '1.7.0'\ndependencies = ['helper']\n"
        "[tool.uv.sources]\nhelper = { path = '../no-such-sibling' }\n"
    )
    return folder


BACKEND = """
import os, zipfile

def _wheel(folder, files):
    info = "livekit_agents-1.7.0.dist-info"
    files |= {
        f"{info}/METADATA": "Metadata-Version: 2.1\\nName: livekit-agents\\nVersion: 1.7.0\\n"
            "Requires-Dist: helper\\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\\n" for path in [*files, f"{info}/RECORD"])
    name = "livekit_agents-1.7.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    return name

def build_wheel(folder, settings=None, metadata=None):
    with open("livekit/agents/__init__.py") as file:
        return _wheel(folder, {"livekit/agents/__init__.py": file.read()})

def build_editable(folder, settings=None, metadata=None):
    return _wheel(folder, {"livekit_agents.pth": os.getcwd()})
"""


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=somebody", "-c", "user.email=somebody@host.example"]
    return run(["git", "-C", folder, *identity, *arguments], limit_s=60).strip()


def commit(folder: Path, when: str) -> str:
    git(folder, "add", "-A")
    stamp = f"{when}T00:00:00Z"
    run(
        ["git", "-C", folder, "-c", "user.name=somebody", "-c", "user.email=a@host.example",
         "commit", "-q", "-m", "change", "--date", stamp],
        limit_s=60, more={"GIT_COMMITTER_DATE": stamp},
    )  # fmt: skip
    return git(folder, "rev-parse", "HEAD")


@pytest.mark.usefixtures("_tools")
def test_a_change_in_a_checkout_is_seen_at_once_and_told(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "agents")
    spec = parse(str(folder))
    build = make(spec, tmp_path / "cache")
    code = "import livekit.agents as a; print(a.BUILD)"
    assert said_by(build, code) == "mine"
    (folder / "livekit-agents/livekit/agents/__init__.py").write_text("BUILD = 'changed'\n")
    again = make(spec, tmp_path / "cache")
    assert (again.python, said_by(again, code)) == (build.python, "changed")
    assert again.source != build.source
    assert again.as_of is None


@NO_GIT
@pytest.mark.usefixtures("_tools")
def test_a_checkout_is_as_of_its_commit_and_says_whether_it_was_changed(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "agents")
    git(tmp_path, "init", "-q", str(folder))
    head = commit(folder, "2025-04-01")
    build = make(parse(str(folder)), tmp_path / "cache")
    assert (build.as_of, build.installed["helper"]) == ("2025-04-02T00:00:00Z", "1.0")
    assert build.source == f"commit {head[:12]}"
    (folder / "livekit-agents/livekit/agents/__init__.py").write_text("BUILD = 'changed'\n")
    changed = make(parse(str(folder)), tmp_path / "cache").source
    assert changed is not None
    assert changed.startswith(f"commit {head[:12]} with changes")


@NO_GIT
@pytest.mark.usefixtures("_tools")
@pytest.mark.parametrize("ref", ["v1", "side", "commit", "short", None])
def test_a_git_ref_is_the_commit_it_means(ref: str | None, tmp_path: Path) -> None:
    folder = checkout(tmp_path / "agents", "BUILD = 'first'\n")
    git(tmp_path, "init", "-q", "-b", "main", str(folder))
    first = commit(folder, "2025-04-01")
    git(folder, "tag", "-a", "v1", "-m", "one")
    git(folder, "branch", "side")
    (folder / "livekit-agents/livekit/agents/__init__.py").write_text("BUILD = 'second'\n")
    commit(folder, "2025-07-01")
    name = {"commit": first, "short": first[:9]}.get(str(ref), ref)
    text = f"git+file://{folder}" + (f"@{name}" if name else "")
    build = make(parse(text), tmp_path / "cache")
    expected = ("first", "1.0", "2025-04-02") if ref else ("second", "2.0", "2025-07-02")
    assert build.as_of is not None
    assert (
        said_by(build, "import livekit.agents as a; print(a.BUILD)"),
        build.installed["helper"],
        build.as_of[:10],
    ) == expected
    assert build.source is not None
    assert git(folder, "rev-parse", "--short=12", f"{name or 'HEAD'}^{{commit}}") in build.source


@NO_GIT
def test_a_ref_that_is_not_there_is_said_as_such(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "agents")
    git(tmp_path, "init", "-q", str(folder))
    commit(folder, "2025-04-01")
    with pytest.raises(BuildError, match="expected a branch, tag or commit, found no nowhere"):
        make(parse(f"{folder}@nowhere"), tmp_path / "cache")
    with pytest.raises(BuildError, match=r"^git: "):
        make(parse(f"git+file://{tmp_path}/nothing@main"), tmp_path / "cache")


def test_a_folder_that_is_neither_is_said_as_such(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="expected a checkout of livekit-agents"):
        make(parse(str(tmp_path)), tmp_path / "cache")


@pytest.mark.usefixtures("_tools")
def test_an_environment_s_folder_is_a_build_as_it_is(tmp_path: Path) -> None:
    made = make(parse("livekit-agents==1.5.0"), tmp_path / "cache")
    copy = tmp_path / "copy"
    shutil.copytree(Path(made.python).parents[1], copy, symlinks=True)
    build = make(parse(str(copy)), tmp_path / "cache")
    assert Path(build.python).is_relative_to(copy)
    assert build.installed == made.installed
    (planted,) = copy.glob("lib/python*/site-packages/livekit/agents/__init__.py")
    planted.write_text("BUILD = 'planted'\n")
    again = make(parse(str(copy)), tmp_path / "cache").source
    assert again != build.source
    assert re.fullmatch(r"files [0-9a-f]{6}", str(again)), "no path of this machine"


def test_an_interpreter_that_lists_no_packages_is_said_as_such(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "pyvenv.cfg").touch()
    python = tmp_path / "bin" / "python"
    python.write_text("#!/bin/sh\necho hello\n")
    python.chmod(0o755)
    with pytest.raises(BuildError, match="to list its packages, found 'hello'"):
        make(parse(str(tmp_path)), tmp_path / "cache")


@pytest.mark.usefixtures("_tools")
def test_what_an_environment_prints_as_it_starts_is_no_answer(tmp_path: Path) -> None:
    made = make(parse("livekit-agents==1.5.0"), tmp_path / "cache")
    folder = Path(made.python).parents[1]
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "noisy.pth").write_text("import sys; print('welcome')\n")
    build = make(parse(str(folder)), tmp_path / "cache")
    assert (build.installed, build.source is None) == (made.installed, False)


def test_a_built_node_checkout_is_used_where_it_is(tmp_path: Path) -> None:
    package = tmp_path / "agents-js" / "agents"
    (package / "node_modules/@livekit/rtc-node").mkdir(parents=True)
    described = {"name": "@livekit/rtc-node", "version": "0.13.0"}
    (package / "node_modules/@livekit/rtc-node/package.json").write_text(json.dumps(described))
    (package / "package.json").write_text(
        json.dumps({"name": "@livekit/agents", "version": "1.9.9"})
    )
    spec = parse(str(tmp_path / "agents-js"))
    with pytest.raises(BuildError, match="expected a built checkout"):
        make(spec, tmp_path / "cache")
    (package / "dist").mkdir()
    build = make(spec, tmp_path / "cache")
    assert build.home is not None
    assert (build.home / "node_modules/@livekit/agents").resolve() == package
    assert build.installed == {"@livekit/agents": "1.9.9", "@livekit/rtc-node": "0.13.0"}


@NO_NPM
@NO_GIT
@pytest.mark.usefixtures("_tools")
def test_a_node_commit_is_built_with_the_manager_it_asks_for(tmp_path: Path) -> None:
    folder = tmp_path / "agents-js"
    (folder / "agents").mkdir(parents=True)
    script = "mkdir -p agents/dist && echo built > agents/dist/index.js"
    (folder / "package.json").write_text(
        json.dumps({"name": "all", "private": True, "scripts": {"build": script}})
    )
    described = {"name": "@livekit/agents", "version": "1.9.9", "dependencies": {}}
    (folder / "agents/package.json").write_text(json.dumps(described))
    git(tmp_path, "init", "-q", str(folder))
    commit(folder, "2025-04-01")
    build = make(parse(f"{folder}@HEAD"), tmp_path / "cache")
    assert build.home is not None
    dist = build.home / "node_modules/@livekit/agents/dist/index.js"
    assert dist.read_text() == "built\n"
    assert not (folder / "agents/dist").exists()
    assert build.as_of == "2025-04-02T00:00:00Z"


# --- Whole or not at all -------------------------------------------------------------------------


def test_what_fails_half_way_leaves_nothing_and_is_tried_again(tmp_path: Path) -> None:
    def fails(folder: Path) -> Stamp:
        (folder / "half").mkdir(parents=True)
        raise BuildError("no")

    with pytest.raises(BuildError, match=r"^no$"):
        kept(tmp_path, "key", make=fails, sound=lambda *_: True, progress=lambda _: None)
    assert [path.name for path in tmp_path.iterdir()] in ([], ["key.lock"])

    def works(folder: Path) -> Stamp:
        folder.mkdir()
        return Stamp("key", None, {})

    folder, stamp = kept(
        tmp_path, "key", make=works, sound=lambda *_: True, progress=lambda _: None
    )
    assert (folder, stamp) == (tmp_path / "key", Stamp("key", None, {}))


def test_what_a_killed_process_left_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / "key.tmp-1/half").mkdir(parents=True)
    (tmp_path / "other.tmp-1").mkdir()

    def works(folder: Path) -> Stamp:
        folder.mkdir()
        return Stamp("key", None, {})

    kept(tmp_path, "key", make=works, sound=lambda *_: True, progress=lambda _: None)
    names = {path.name for path in tmp_path.iterdir()} - {"key.lock"}
    assert names == {"key", "other.tmp-1"}


def test_two_that_want_the_same_make_it_once(tmp_path: Path) -> None:
    made: list[str] = []
    told: list[str] = []
    begun = threading.Event()

    def slowly(folder: Path) -> Stamp:
        begun.set()
        folder.mkdir()
        time.sleep(0.5)
        made.append(folder.name)
        return Stamp("key", None, {})

    def want() -> None:
        kept(tmp_path, "key", make=slowly, sound=lambda *_: True, progress=told.append)

    first = threading.Thread(target=want)
    first.start()
    assert begun.wait(10)
    want()
    first.join()
    assert len(made) == 1
    assert told == ["waiting for another process that makes it"]


def test_one_who_never_ends_is_not_waited_for_forever(tmp_path: Path) -> None:
    def want(folder: Path) -> Stamp:
        with pytest.raises(BuildError, match="another process has been making it for 0 s"):
            kept(
                tmp_path, "key", make=want, sound=lambda *_: True, progress=lambda _: None,
                wait_s=0,
            )  # fmt: skip
        folder.mkdir()
        return Stamp("key", None, {})

    kept(tmp_path, "key", make=want, sound=lambda *_: True, progress=lambda _: None)


# --- Tools ---------------------------------------------------------------------------------------


def test_a_tool_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(60)\n"
    )
    with pytest.raises(BuildError, match="did not end within 2 s"):
        run([sys.executable, "-c", code], limit_s=2)
    grandchild = Path("/proc") / (tmp_path / "pid").read_text() / "stat"
    for _ in range(100):
        if not grandchild.exists() or grandchild.read_text().split()[2] == "Z":
            return
        time.sleep(0.1)
    raise AssertionError("what the tool started is still there")


@NO_GIT
def test_a_tool_s_complaint_holds_no_password(tmp_path: Path) -> None:
    url = "https://me:secret@127.0.0.1:1/agents"
    with pytest.raises(BuildError) as failure:
        make(parse(f"git+{url}@main"), tmp_path / "cache")
    assert "secret" not in str(failure.value)
    complaint = f"import sys; sys.exit('fatal: unable to access {url}')"
    with pytest.raises(BuildError, match=r"unable to access https://127\.0\.0\.1:1/agents"):
        run([sys.executable, "-c", complaint], limit_s=60)


def test_a_tool_s_complaint_is_one_line_without_decoration() -> None:
    complaint = (
        "warning: `VIRTUAL_ENV` is another\\n"
        "  \\u00d7 No solution found when resolving dependencies:\\n"
        "  ╰─▶ Because there is no version of\\n      x==1, it can not be.\\n"
        "npm error code E404\\nnpm error A complete log of this run can be found in: /x\\n"
    )
    code = f"import sys; sys.stderr.reconfigure(encoding='utf-8'); sys.exit('{complaint}')"
    with pytest.raises(BuildError) as failure:
        run([sys.executable, "-c", code], limit_s=60)
    told = str(failure.value)
    assert told.partition(": ")[2] == "Because there is no version of x==1, it can not be."


def test_a_tool_that_is_missing_is_said_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match="expected npm on the PATH, found none"):
        make(parse("npm:@livekit/agents@1.9.0"), tmp_path)


# --- For real ------------------------------------------------------------------------------------


@pytest.mark.registry
@pytest.mark.parametrize("text", ["livekit-agents==1.4.6", "npm:@livekit/agents@1.9.0"])
def test_a_real_release_is_installed_as_of_its_date(text: str) -> None:
    build = make(parse(text), CACHE)
    name = "livekit-agents" if build.runtime == "python" else "@livekit/agents"
    wire = "livekit" if build.runtime == "python" else "@livekit/rtc-node"
    assert build.installed[name] == text.rpartition("=" if "==" in text else "@")[2]
    assert wire in build.installed
    assert build.as_of is not None
    assert make(parse(text), CACHE) == build


def test_another_interpreter_finds_the_probe_and_nothing_else_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interpreter = tmp_path / "python"
    seen = tmp_path / "seen"
    interpreter.write_text(f'#!/bin/sh\n(ls "$PYTHONPATH"; ls) > {seen}\n')
    interpreter.chmod(0o755)
    (tmp_path / "livekit").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(ScenarioError, match="left with 0 before its end"):
        run_in_child(CATALOGUE["barge-in"], tmp_path / "out", python=str(interpreter))
    assert seen.read_text().split() == ["probe", "probe"]


@pytest.mark.parametrize("maker", ["sink", "driver", "model"])
def test_another_interpreter_finds_code_of_the_caller_s_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, maker: str
) -> None:
    interpreter = tmp_path / "python"
    seen = tmp_path / "seen"
    interpreter.write_text(f'#!/bin/sh\n(echo "$PYTHONPATH"; pwd) > {seen}\n')
    interpreter.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "/somewhere/of/mine")
    with pytest.raises(ScenarioError, match="left with 0 before its end"):
        run_in_child(
            CATALOGUE["barge-in"],
            tmp_path / "out",
            python=str(interpreter),
            **{maker: "mine:make"},
        )
    path, folder = seen.read_text().splitlines()
    assert path.split(os.pathsep)[1:] == ["/somewhere/of/mine"]
    assert Path(folder) == tmp_path
