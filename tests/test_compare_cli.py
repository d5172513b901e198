"""``sinkprobe compare``: folders and builds, gates and exit codes, and what is said on the way."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import probe.builds
import probe.cli.matrix
from probe.builds import BuildFailed
from probe.cli.main import _Terminated, main
from probe.errors import ScenarioError
from probe.scenarios.catalogue import CATALOGUE
from probe.scenarios.runner import Outcome
from probe.scenarios.scenario import Scenario
from probe.sweep import Build, run
from reports.compare.gates import parse
from reports.findings import SettingError
from tests.findings_calls import HandCall, barge_in, clean_call
from tests.report_traces import header

ROOT = Path(__file__).resolve().parents[1]
SCRIPTED = {"scenario": "barge-in-activity", "pacing": "stalled"}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory without settings of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[..., str]:
    """Makes a folder of traces."""

    def make(name: str, *calls: HandCall, scripted: dict[str, Any] | None = SCRIPTED) -> str:
        folder = tmp_path / name
        folder.mkdir(parents=True, exist_ok=True)
        for nth, call in enumerate(calls):
            started = 1_700_000_000.0 + nth
            call.analysis(folder, head=header(run=scripted, started_unix_s=started))
        return str(folder)

    return make


def leaks(*leaked_ms: float) -> list[HandCall]:
    return [barge_in(plays_on=ms) for ms in leaked_ms]


def compare(*arguments: str) -> int:
    return main(["compare", *arguments])


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(capsys.readouterr().out)
    return loaded


# --- Folders -------------------------------------------------------------------------------------


def test_two_folders_of_traces_are_compared_by_their_calls(
    recorded: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    old = recorded("old", *leaks(50, 60, 50, 50, 60))
    new = recorded("new/deeper", *leaks(0, 0, 10, 0, 0)).removesuffix("/deeper")
    assert compare(old, new) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "A old livekit-agents 1.8.9" in out
    assert "barge-in-activity, stalled, B against A: leaked at sent 50 ms less (better)" in out


def test_a_run_without_its_barge_in_is_set_apart_by_the_catalogue(
    recorded: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    old = recorded("old", *leaks(50, 50), clean_call())
    assert compare(old, recorded("new", *leaks(50)), "--format", "json") == 0
    (table,) = document(capsys)["tables"]
    (apart,) = table["columns"][0]["summary"]["set_apart"]
    assert apart["reason"] == "it never came to a barge-in"


def test_a_trace_that_cant_be_read_costs_a_line_and_the_exit_code(
    recorded: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = recorded("old", *leaks(50)), recorded("new", *leaks(50))
    (tmp_path / "new" / "no-trace.jsonl").write_text("nothing of the kind\n")
    assert compare(old, new) == 1
    captured = capsys.readouterr()
    assert "no-trace.jsonl" in captured.err
    assert "Comparison of 2 builds" in captured.out


@pytest.mark.parametrize("moved_s", [0.0, 1000.0])
def test_it_says_so_where_folders_were_recorded_one_after_the_other(
    moved_s: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place, name in enumerate(("old", "new")):
        (tmp_path / name).mkdir()
        for nth, call in enumerate(leaks(50, 50)):
            begun = 1_700_000_000.0 + 2 * nth + place + place * moved_s
            call.analysis(tmp_path / name, head=header(run=SCRIPTED, started_unix_s=begun))
    assert compare("old", "new", "--format", "json") == 0
    assert bool(document(capsys)["notes"]) is (moved_s > 0)


def test_folders_of_one_name_keep_apart(
    recorded: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = recorded("one/traces", *leaks(50)), recorded("other/traces", *leaks(50))
    assert compare(one, other, one, "--format", "json") == 0
    assert [b["build"] for b in document(capsys)["builds"]] == [one, other, f"{one} (2)"]


def test_folders_are_compared_where_livekit_is_not_installed(
    recorded: Callable[..., str],
) -> None:
    old, new = recorded("old", *leaks(50)), recorded("new", *leaks(50))
    code = (
        "import sys; sys.modules['livekit'] = None\n"
        "from probe.cli.main import main\n"
        f"raise SystemExit(main(['compare', {old!r}, {new!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "Comparison of 2 builds" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Missing argument"),
        (("old",), "expected two folders of traces or more, found only old"),
        (("old", "installed"), "found both: old is a folder of traces"),
        (("old", "new", "--runs", "3"), "--runs goes with builds"),
        (("old", "new", "--scenario", "barge-in"), "--scenario goes with builds"),
        (("old", "nowhere"), "nowhere"),
        (("old", "new", "--fail-on", "new:nothing"), "expected new:RULE"),
        (("old", "new", "--fail-on", "late-frames+2kg"), "late-frames+2kg"),
        (
            ("old", "new", "--fail-on", "late-frames+"),
            "found the end (column 13 of 'late-frames+')",
        ),
        (("old", "new", "--fail-on", "nothing"), "expected a severity"),
        (("old", "new", "--set", "late-frames.nothing=3"), "--set"),
        (("installed", "--scenario", "nothing"), "expected a scenario or a TOML file"),
        (("installed", "livekit-agents=1"), "livekit-agents=1"),
        (("installed", "~no-such-user/agents"), "~no-such-user/agents: expected installed"),
        (("installed", "a" * 400), "expected installed, livekit-agents==VERSION"),
        (("installed", ""), "an empty text: expected installed"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...],
    said: str,
    recorded: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    recorded("old", *leaks(50))
    recorded("new", *leaks(50))
    assert compare(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err


def test_an_empty_folder_is_an_error_that_says_so(
    recorded: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(recorded("old", *leaks(50)), recorded("empty")) == 1
    assert "empty: expected traces" in capsys.readouterr().err


# --- Gates ---------------------------------------------------------------------------------------

LEAK = "leak-after-verdict"


@pytest.mark.parametrize(
    ("gate", "before", "after", "code"),
    [
        (f"new:{LEAK}", (0, 0, 0), (0, 50, 0), 3),
        (f"new:{LEAK}", (0, 50, 0), (50, 50, 50), 0),
        (f"new:{LEAK}", (50, 50, 50), (0, 0, 0), 0),
        (f"{LEAK}+20ms", (50, 50, 50), (80, 80, 80), 3),
        (f"{LEAK}+20ms", (50, 50, 50), (70, 70, 70), 0),
        (f"{LEAK}+20ms", (0, 0, 0), (50, 50, 0), 3),
        (f"{LEAK}+0.02s", (0, 0, 0), (20, 20, 20), 0),
        (f"{LEAK} + 480 samples", (50, 50, 50), (80, 80, 80), 3),
        (f"{LEAK}+800samples", (50, 50, 50), (80, 80, 80), 0),
        (f"{LEAK}+20ms", (80, 80, 80), (50, 50, 50), 0),
        (LEAK, (50, 50, 50), (0, 0, 0), 0),
        (LEAK, (0, 0, 0), (0, 0, 50), 3),
        (f"{LEAK}>60ms", (90, 90, 90), (50, 50, 50), 0),
        (f"{LEAK}>60ms", (0, 0, 0), (90, 50, 50), 3),
        ("worse", (0,) * 5, (50,) * 5, 3),
        ("worse", (50,) * 5, (0,) * 5, 0),
        ("worse", (0,) * 3, (50,) * 3, 1),
        ("warning", (50, 50, 50), (0, 0, 0), 0),
        ("warning", (50, 50, 50), (50, 50, 50), 3),
    ],
)
def test_a_gate_is_held_against_the_last_build(
    gate: str,
    before: tuple[float, ...],
    after: tuple[float, ...],
    code: int,
    recorded: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    old, new = recorded("old", *leaks(*before)), recorded("new", *leaks(*after))
    assert compare(old, new, "--fail-on", gate) == code
    assert (f"--fail-on {gate}" in capsys.readouterr().err) is (code != 0)


def test_a_build_in_the_middle_passes_for_nothing(recorded: Callable[..., str]) -> None:
    old, middle = recorded("old", *leaks(0)), recorded("middle", *leaks(90))
    last = recorded("last", *leaks(0))
    for gate in (LEAK, f"new:{LEAK}", f"{LEAK}+10ms"):
        assert compare(old, middle, last, "--fail-on", gate) == 0


@pytest.mark.parametrize("gate", [f"new:{LEAK}", f"{LEAK}+10ms"])
@pytest.mark.parametrize("blind", ["old", "new"])
def test_what_could_not_be_judged_on_one_of_them_does_not_pass(
    gate: str, blind: str, recorded: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    folders = []
    for name in ("old", "new"):
        calls = leaks(0, 0)
        if name == blind:
            calls[1].without("sent", "silence", "tapped")
        folders.append(recorded(name, *calls))
    assert compare(*folders, "--fail-on", gate) == 1
    assert "not judged" in capsys.readouterr().err


def test_a_last_build_without_a_run_that_counts_does_not_pass(
    recorded: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = recorded("old", *leaks(0)), recorded("new", clean_call())
    assert compare(old, new, "--fail-on", f"new:{LEAK}") == 1
    assert "new has no run that counts" in capsys.readouterr().err


def test_a_gate_that_is_none_says_what_was_expected() -> None:
    with pytest.raises(SettingError, match="RULE>VALUE such as"):
        parse("leak")
    with pytest.raises(SettingError, match="about audio sent after the verdict"):
        parse(f"{LEAK}+3%")


# --- Builds --------------------------------------------------------------------------------------


class Staged:
    """Makes no call, but leaves a trace of the build's own, or fails as it is told."""

    def __init__(self, made: Mapping[str, Sequence[HandCall | str]]) -> None:
        self._left = {build: list(calls) for build, calls in made.items()}
        self.order: list[tuple[str, str, str]] = []
        self.interrupt_at: int | None = None
        self.interrupt = KeyboardInterrupt()

    def __call__(
        self,
        scenario: Scenario,
        directory: Path,
        *,
        python: str,
        command: Sequence[str] | None,
        stop: threading.Event,
    ) -> Outcome:
        self.order.append((python, scenario.name, scenario.axes.pacing))
        if len(self.order) == self.interrupt_at:
            raise self.interrupt
        made = self._left[python].pop(0)
        if isinstance(made, str):
            raise ScenarioError(made)
        directory.mkdir(parents=True, exist_ok=True)
        axes = scenario.axes
        run = {"scenario": scenario.name, "pacing": axes.pacing, "frame_ms": axes.frame_ms}
        trace = Path(made.analysis(directory, head=header(run=run)).trace.path)
        return Outcome(trace, trace.with_suffix(".log"))


@pytest.fixture
def staged(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Staged]:
    """Has builds made and called without any environment; each is its own interpreter."""

    def stage(
        found: Sequence[Build | BuildFailed], made: Mapping[str, Sequence[HandCall | str]]
    ) -> Staged:
        call = Staged(made)
        monkeypatch.setattr(probe.builds, "make_all", lambda *_: tuple(found))
        monkeypatch.setattr(probe.cli.matrix, "run", partial(run, call=call))
        return call

    return stage


OLD = Build(
    "old 1.0", python="/old/python", installed={"livekit-agents": "1.0"}, as_of="2025-01-02"
)
NEW = Build("new 2.0", python="/new/python", source="/src/agents at 1234abc")


def test_builds_are_called_by_turns_call_by_call(
    staged: Callable[..., Staged], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = staged([OLD, NEW], {"/old/python": leaks(*[50] * 8), "/new/python": leaks(*[0] * 8)})
    code = compare(
        "installed", "installed", "--scenario", "barge-in", "--scenario", "barge-in-activity",
        "--pacing", "burst,stalled", "--runs", "2", "--out", "kept", "--format", "json",
    )  # fmt: skip
    assert code == 0
    one_round = [
        (python, scenario, pacing)
        for scenario in ("barge-in", "barge-in-activity")
        for pacing in ("burst", "stalled")
        for python in ("/old/python", "/new/python")
    ]
    assert call.order == one_round * 2
    told = document(capsys)
    assert [len(c["runs"]) for table in told["tables"] for c in table["columns"]] == [2] * 8
    assert told["builds"][0]["installed"] == {"livekit-agents": "1.0"}
    assert told["builds"][0]["as_of"] == "2025-01-02"
    traces = [r["trace"] for t in told["tables"] for c in t["columns"] for r in c["runs"]]
    assert all(Path(trace).is_relative_to("kept") for trace in traces)


@pytest.mark.parametrize("has", ["pyproject.toml", "package.json", "pyvenv.cfg", "node_modules"])
def test_a_folder_with_sources_is_a_build_and_no_folder_of_traces(
    has: str, staged: Callable[..., Staged], tmp_path: Path
) -> None:
    call = staged([OLD, NEW], {"/old/python": leaks(50), "/new/python": leaks(0)})
    (tmp_path / "agents" / has).mkdir(parents=True)
    assert compare("agents", "agents", "--runs", "1") == 0
    assert len(call.order) == 2


def test_single_traces_are_compared_as_well(
    recorded: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(recorded("old", *leaks(50, 0)))
    assert compare(*sorted(map(str, folder.iterdir())), "--format", "json") == 0
    told = document(capsys)
    assert [b["build"] for b in told["builds"]] == ["call-0.jsonl", "call-1.jsonl"]


def test_a_folder_of_several_builds_names_them_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mixed").mkdir()
    for version in ("1.6.5", "1.8.9"):
        runtime = {"language": "python", "livekit_agents": version}
        barge_in().analysis(tmp_path / "mixed", head=header(runtime=runtime, run=SCRIPTED))
    assert compare("mixed", "mixed") == 0
    assert "livekit-agents 1.6.5, 1.8.9, python" in capsys.readouterr().out


def test_five_runs_of_the_default_call_unless_told_otherwise(
    staged: Callable[..., Staged], capsys: pytest.CaptureFixture[str]
) -> None:
    call = staged([OLD, NEW], {"/old/python": leaks(*[50] * 5), "/new/python": leaks(*[0] * 5)})
    assert compare("installed", "installed") == 0
    assert {scenario for _, scenario, _ in call.order} == {"barge-in"}
    assert len(call.order) == 10
    out = " ".join(capsys.readouterr().out.split())
    assert "leaked at sent 50 ms less (better)" in out
    assert "dependencies as of 2025-01-02" in out
    assert "/src/agents at 1234abc" in out
    assert "Traces: sinkprobe-runs/compare-" in out


def test_a_build_that_cant_be_had_is_a_row_and_exit_code_1(
    staged: Callable[..., Staged], capsys: pytest.CaptureFixture[str]
) -> None:
    staged(
        [OLD, BuildFailed("gone", "no release fits"), NEW],
        {"/old/python": leaks(*[50] * 5), "/new/python": leaks(*[0] * 5)},
    )
    assert compare("installed", "installed", "installed") == 1
    out = capsys.readouterr().out
    assert "not available: no release fits" in out
    assert "C against A: leaked at sent 50 ms less" in out


def test_where_no_build_can_be_had_it_says_why_of_each(
    staged: Callable[..., Staged], capsys: pytest.CaptureFixture[str]
) -> None:
    staged([BuildFailed("one", "no release fits"), BuildFailed("two", "no compiler")], {})
    assert compare("installed", "installed") == 1
    out = capsys.readouterr().out
    assert "no release fits" in out
    assert "no compiler" in out


def test_a_gate_does_not_pass_on_a_last_build_that_cant_be_had(
    staged: Callable[..., Staged], capsys: pytest.CaptureFixture[str]
) -> None:
    staged([OLD, BuildFailed("gone", "no release fits")], {"/old/python": leaks(*[0] * 5)})
    assert compare("installed", "installed", "--fail-on", f"new:{LEAK}") == 1
    assert "gone has no run" in capsys.readouterr().err


def test_a_call_that_fails_is_told_and_the_exit_code_1_but_a_gate_is_3(
    staged: Callable[..., Staged], capsys: pytest.CaptureFixture[str]
) -> None:
    made = {"/old/python": leaks(0, 0), "/new/python": ["it hung", *leaks(50)]}
    staged([OLD, NEW], made)
    assert compare("installed", "installed", "--runs", "2") == 1
    assert "B: no result 1/2: it hung" in capsys.readouterr().out
    staged([OLD, NEW], made)
    assert compare("installed", "installed", "--runs", "2", "--fail-on", f"new:{LEAK}") == 3


def test_one_build_alone_is_wrong_usage(
    staged: Callable[..., Staged], capsys: pytest.CaptureFixture[str]
) -> None:
    staged([OLD], {})
    assert compare("livekit-agents==1.5.*") == 2
    assert "expected two builds or more, found only old 1.0" in capsys.readouterr().err


def test_a_call_that_cant_be_made_is_left_out_with_its_reason(
    staged: Callable[..., Staged], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    staged([OLD, NEW], {"/old/python": leaks(0), "/new/python": leaks(0)})
    Path("late.toml").write_text('base = "barge-in"\n[call]\nreply_ms = 400\nat = 300\n')
    assert compare("installed", "installed", "--scenario", "late.toml", "--runs", "1") == 0
    assert "late" in capsys.readouterr().out


def test_interrupted_it_prints_what_there_is_and_leaves_with_130(
    staged: Callable[..., Staged], capsys: pytest.CaptureFixture[str]
) -> None:
    call = staged([OLD, NEW], {"/old/python": leaks(*[50] * 5), "/new/python": leaks(*[0] * 5)})
    call.interrupt_at = 5
    assert compare("installed", "installed", "--format", "json") == 130
    told = document(capsys)
    assert told["complete"] is False
    assert [len(column["runs"]) for column in told["tables"][0]["columns"]] == [2, 2]


def test_ended_by_a_signal_it_prints_the_same_and_leaves_with_that_signal_s_code(
    staged: Callable[..., Staged], capsys: pytest.CaptureFixture[str]
) -> None:
    call = staged([OLD, NEW], {"/old/python": leaks(*[50] * 5), "/new/python": leaks(*[0] * 5)})
    call.interrupt_at = 5
    call.interrupt = _Terminated(15)
    assert compare("installed", "installed", "--format", "json") == 128 + 15
    assert document(capsys)["complete"] is False


def test_in_every_scenario_with_a_barge_in_in_the_catalogue_somebody_interrupts() -> None:
    without = {name for name, scenario in CATALOGUE.items() if not scenario.barges_in}
    assert without == {"uninterrupted", "reply-over-caller", "realtime-uninterrupted"}


def test_the_formats_say_the_same(
    recorded: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = recorded("old", *leaks(50, 60, 50, 50, 60)), recorded("new", *leaks(*[0] * 5))
    assert compare(old, new, "--format", "markdown") == 0
    page = capsys.readouterr().out
    assert page.startswith("- **barge-in-activity, stalled, B against A:** leaked at sent")
    assert compare(old, new, "--format", "json") == 0
    told = document(capsys)["tables"][0]["against"][0]["differences"]["leaked-sent"]
    assert told["verdict"] == "differs"
    assert told["change"] == -50
    assert f"**{chr(0x2212)}50**" in page
