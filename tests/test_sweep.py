"""The sweep: what is planned, that it is run whole whatever fails, and what its table says."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import probe.cli.matrix
from probe.cli.main import main
from probe.cli.matrix import Made
from probe.cli.sweep_table import Table, as_json, tabulate
from probe.cli.sweep_text import as_markdown, as_terminal
from probe.errors import ScenarioError
from probe.scenarios.axes import PACINGS
from probe.scenarios.catalogue import CATALOGUE
from probe.scenarios.runner import Outcome, run_in_child
from probe.scenarios.scenario import Scenario
from probe.sweep import INSTALLED, Build, Call, Cell, calls, plan, run
from probe.sweep.journal import opened
from probe.trace.events import RunSent
from reports import Analysis
from reports.compare.runs import gather, leaked_ms, outcome_of, why_set_apart
from tests.report_traces import MS
from tests.test_assertions import Calls

BARGE_IN = CATALOGUE["barge-in"]
UNINTERRUPTED = CATALOGUE["uninterrupted"]
FIXED = CATALOGUE["interrupted-before-subscribed"]


# --- Planning ------------------------------------------------------------------------------------


def test_every_combination_is_planned_once() -> None:
    planned = plan(
        [BARGE_IN, UNINTERRUPTED],
        {"pacing": ["burst", "realtime", "burst"], "rate_hz": [8000, 24_000]},
    )
    assert [(c.scenario.name, c.axes.pacing, c.axes.rate_hz) for c in planned.cells] == [
        (name, pacing, rate)
        for name in ("barge-in", "uninterrupted")
        for pacing in ("burst", "realtime")
        for rate in (8000, 24_000)
    ]
    assert planned.left_out == ()


def test_an_axis_that_is_not_named_stays_where_the_scenario_has_it() -> None:
    (cell,) = plan([FIXED], {}).cells
    assert cell.axes == FIXED.axes


def test_a_scenario_in_which_nothing_lands_is_not_varied_along_the_place() -> None:
    planned = plan([FIXED, BARGE_IN], {"at": [300, 900]})
    assert [c.axes.at for c in planned.cells] == [FIXED.axes.at, 300, 900]


def test_what_makes_no_call_is_left_out_with_its_reason() -> None:
    planned = plan([CATALOGUE["barge-in-model"]], {"at": ["before-first-frame", 300, 9000]})
    assert [c.axes.at for c in planned.cells] == [300]
    assert [one.axes["at"] for one in planned.left_out] == ["before-first-frame", 9000]
    assert "can't land before the first frame" in planned.left_out[0].reason
    assert "can't land at 9000 ms" in planned.left_out[1].reason


def test_a_place_behind_the_end_of_a_shorter_reply_moves_to_its_middle() -> None:
    planned = plan([BARGE_IN], {"reply_ms": [500, 2995]})
    assert [c.axes.at for c in planned.cells] == [250, BARGE_IN.axes.at]


def test_runs_are_interleaved_so_that_what_is_broken_off_has_touched_all_alike() -> None:
    cells = plan([BARGE_IN, UNINTERRUPTED], {}).cells
    assert [(c.cell.scenario.name, c.run) for c in calls(cells, 2)] == [
        ("barge-in", 1), ("uninterrupted", 1), ("barge-in", 2), ("uninterrupted", 2),
    ]  # fmt: skip


@settings(deadline=None)
@given(
    names=st.lists(st.sampled_from([*CATALOGUE]), min_size=1, max_size=4),
    pacings=st.lists(st.sampled_from(PACINGS), min_size=1, max_size=3),
    frames=st.lists(st.sampled_from([10, 10.0, 20, 98.5]), min_size=1, max_size=3),
    places=st.lists(
        st.sampled_from([0, 300, 2994, 3000, "twice", "first-frame"]), min_size=1, max_size=3
    ),
)
def test_no_two_cells_are_alike_or_share_a_folder(
    names: list[str], pacings: list[str], frames: list[float], places: list[int | str]
) -> None:
    builds = (INSTALLED, Build("older", "/nowhere/python"))
    axes: dict[str, Sequence[Any]] = {"pacing": pacings, "frame_ms": frames, "at": places}
    cells = plan([CATALOGUE[name] for name in names], axes, builds).cells
    assert len(set(cells)) == len(cells)
    assert len({cell.folder for cell in cells}) == len(cells)
    assert {c.build for c in cells} <= set(builds)


# --- Running -------------------------------------------------------------------------------------


class Staged:
    """Makes no call, but leaves the trace of one."""

    def __init__(self, trace: Path, fails: Callable[[Scenario], str | None] = lambda _: None):
        self._trace = trace
        self._fails = fails
        self._lock = threading.Lock()
        self.at_once = 0
        self.most = 0
        self.pythons: list[str] = []

    def __call__(
        self,
        scenario: Scenario,
        directory: Path,
        *,
        python: str,
        command: Sequence[str] | None,
        stop: threading.Event,
    ) -> Outcome:
        with self._lock:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
            self.pythons.append(python)
        try:
            time.sleep(0.01)
            error = self._fails(scenario)
            if error is not None:
                raise ScenarioError(error)
            directory.mkdir(parents=True, exist_ok=True)
            trace = directory / f"call-{len(list(directory.iterdir()))}.jsonl"
            shutil.copy(self._trace, trace)
            return Outcome(trace, trace.with_suffix(".log"))
        finally:
            with self._lock:
                self.at_once -= 1


@pytest.fixture
def sound(tmp_path: Path) -> Analysis:
    return Calls(tmp_path)()


def unsound(folder: Path) -> Analysis:
    """A trace that does not balance."""
    (folder / "unsound").mkdir(exist_ok=True)
    return Calls(folder / "unsound")(RunSent(200 * MS, 210 * MS, 1, None, 240))


def test_all_calls_are_made_with_no_more_than_jobs_at_a_time(
    sound: Analysis, tmp_path: Path
) -> None:
    staged = Staged(Path(sound.trace.path))
    todo = calls(plan([BARGE_IN, UNINTERRUPTED], {"pacing": PACINGS}).cells, 2)
    done = list(run(todo, tmp_path / "out", jobs=3, call=staged))
    assert sorted(str((d.call.cell.folder, d.call.run)) for d in done) == sorted(
        str((c.cell.folder, c.run)) for c in todo
    )
    assert all(d.trace is not None and d.trace.is_file() and not d.error for d in done)
    assert len({d.trace for d in done}) == len(done)
    assert 1 < staged.most <= 3


def test_a_build_is_run_with_its_own_python(sound: Analysis, tmp_path: Path) -> None:
    staged = Staged(Path(sound.trace.path))
    cells = plan([BARGE_IN], {}, [Build("older", "/older/python")]).cells
    list(run(calls(cells, 1), tmp_path, call=staged))
    assert staged.pythons == ["/older/python"]


def test_a_call_that_fails_is_told_and_the_others_go_on(sound: Analysis, tmp_path: Path) -> None:
    def fails(scenario: Scenario) -> str | None:
        return "it hung" if scenario.name == "barge-in" else None

    staged = Staged(Path(sound.trace.path), fails)
    todo = calls(plan([BARGE_IN, UNINTERRUPTED], {}).cells, 2)
    done = list(run(todo, tmp_path / "out", call=staged))
    assert [(d.call.cell.scenario.name, d.error, d.trace is None) for d in done] == [
        ("barge-in", "it hung", True),
        ("uninterrupted", "", False),
        ("barge-in", "it hung", True),
        ("uninterrupted", "", False),
    ]


def test_closed_early_it_ends_the_calls_under_way_and_begins_no_other(tmp_path: Path) -> None:
    begun: list[str] = []

    def lasting(
        scenario: Scenario,
        directory: Path,
        *,
        python: str,
        command: Sequence[str] | None,
        stop: threading.Event,
    ) -> Outcome:
        begun.append(scenario.name)
        if len(begun) == 1:
            raise ScenarioError("the first ends at once")
        assert stop.wait(20)
        raise ScenarioError("the call was stopped")

    todo = calls(plan([BARGE_IN, UNINTERRUPTED], {}).cells, 5)
    with closing(run(todo, tmp_path, jobs=2, call=lasting)) as results:
        assert next(results).error == "the first ends at once"
    assert len(begun) == 2


def test_what_is_asked_for_next_may_depend_on_the_call_before(
    sound: Analysis, tmp_path: Path
) -> None:
    staged = Staged(Path(sound.trace.path))
    (cell,) = plan([BARGE_IN], {}).cells
    ended: list[int] = []

    def until_three_ended() -> Iterator[Call]:
        while len(ended) < 3:
            yield Call(cell, len(ended) + 1)

    for done in run(until_three_ended(), tmp_path, call=staged):
        ended += [done.call.run]
    assert ended == [1, 2, 3]


def test_what_was_made_before_is_told_in_its_place_and_not_begun_again(
    sound: Analysis, tmp_path: Path
) -> None:
    staged = Staged(Path(sound.trace.path))
    todo = calls(plan([BARGE_IN], {"pacing": PACINGS}).cells, 1)
    begun: list[Call] = []
    with opened(tmp_path) as journal:
        list(run(todo[1:2], tmp_path, journal=journal, call=staged))
        again = run(todo, tmp_path, journal=journal, begun=begun.append, call=staged)
        assert [done.call for done in again] == todo
    assert begun == [todo[0], todo[2]]


# --- Figures -------------------------------------------------------------------------------------


def leaking(analysis: Analysis, ms: int) -> Analysis:
    """The same with another leak, whose causes add up."""
    barge_in = analysis.barge_ins[0]
    assert barge_in.leaked is not None
    assert barge_in.causes is not None
    sent = barge_in.leaked["sent"]
    assert sent is not None
    leak = replace(sent, samples=ms * 24)
    cause = replace(barge_in.causes[0], samples=ms * 24)
    changed = replace(barge_in, leaked={**barge_in.leaked, "sent": leak}, causes=(cause,))
    return replace(analysis, barge_ins=(changed,))


def test_figures_are_medians_and_ranges(sound: Analysis) -> None:
    runs = gather([leaking(sound, ms) for ms in (40, 10, 300, 20)])
    assert runs.leaked is not None
    assert (runs.leaked.median_ms, runs.leaked.least_ms, runs.leaked.most_ms) == (
        30.0,
        10.0,
        300.0,
    )
    assert (runs.count, runs.leaked.count, runs.unaccounted_samples) == (4, 4, 0)
    assert runs.outcomes == {"committed": 4}
    assert runs.kinds == {"activity": 4}


def test_a_run_that_does_not_balance_is_set_apart_and_in_no_figure(
    sound: Analysis, tmp_path: Path
) -> None:
    bad = unsound(tmp_path)
    assert why_set_apart(bad) is not None
    runs = gather([sound, bad])
    assert runs == replace(gather([sound]), set_apart=runs.set_apart)
    (apart,) = runs.set_apart
    assert apart.trace == bad.trace.path
    assert apart.unaccounted_samples == bad.unaccounted_samples
    assert "unaccounted for" in apart.reason


def test_a_run_whose_trace_is_cut_is_set_apart(tmp_path: Path) -> None:
    (apart,) = gather([Calls(tmp_path)(trailer=False)]).set_apart
    assert apart.reason.startswith("the trace is incomplete: ")


def test_a_run_whose_causes_do_not_add_up_to_its_leak_is_set_apart(sound: Analysis) -> None:
    barge_in = replace(sound.barge_ins[0], causes=())
    runs = gather([replace(sound, barge_ins=(barge_in,))])
    assert runs.count == 0
    assert runs.leaked is None
    assert runs.set_apart[0].reason == (
        "barge-in 1: the causes of its leak add up to 0 of 480 samples"
    )


def test_the_leak_of_a_run_is_that_of_all_its_barge_ins(sound: Analysis) -> None:
    once = leaking(sound, 40)
    paused = replace(sound.barge_ins[0], verdict_ns=None, leaked=None, causes=None)
    both = replace(once, barge_ins=(replace(paused, outcome="resumed"), *once.barge_ins * 2))
    assert leaked_ms(both) == 80.0
    assert outcome_of(both) == "resumed, committed, committed"
    assert leaked_ms(replace(once, barge_ins=(paused,))) is None
    unseen = replace(once.barge_ins[0], leaked={"sent": None}, causes=None)
    assert leaked_ms(replace(once, barge_ins=(*once.barge_ins, unseen))) is None
    assert outcome_of(replace(once, barge_ins=())) == "no barge-in"


# --- The table -----------------------------------------------------------------------------------


def table_of(made: list[Made], cells: tuple[Cell, ...], **more: Any) -> Table:
    given: dict[str, Any] = {"expected": {}, "left_out": (), "runs": 1, "jobs": 1, "folder": "out"}
    return tabulate(cells, made, **{**given, **more})


def ran(cell: Cell, number: int, analysis: Analysis | None, error: str = "") -> Made:
    return Made(Call(cell, number), analysis, error, 1.0)


@pytest.fixture
def mixed(sound: Analysis, tmp_path: Path) -> Table:
    """Two cells good, one bad in every way, one that never ran."""
    planned = plan(
        [BARGE_IN, CATALOGUE["barge-in-model"]],
        {"pacing": ["burst", "realtime"], "at": [300, "before-first-frame"], "frame_ms": [98.5]},
    )
    cells = planned.cells
    resumed = replace(leaking(sound, 2395).barge_ins[0], outcome="resumed")
    made = [
        *(ran(cells[0], number, leaking(sound, 10 * number)) for number in (1, 2, 3)),
        ran(cells[1], 1, leaking(sound, 40)),
        ran(cells[1], 2, replace(sound, barge_ins=(resumed,))),
        ran(cells[1], 3, unsound(tmp_path)),
        *(ran(cells[2], number, None, f"{BARGE_IN.name}: it hung") for number in (1, 2, 3)),
    ]
    return table_of(
        made,
        cells,
        runs=3,
        left_out=planned.left_out,
        expected=dict.fromkeys(cells, ("outcome == committed", "kind == activity")),
    )


def test_the_terminal_table_is_readable_at_80_columns(mixed: Table) -> None:
    text = as_terminal(mixed, 80)
    assert max(len(line) for line in text.splitlines()) <= 80
    lines = text.splitlines()
    row = next(line for line in lines if line.startswith("  burst, at 300"))
    assert row.split()[-5:] == ["20", "10–30", "0", "0", "committed"]
    said = " ".join(text.split())
    assert "outcomes: committed 1/2, resumed 1/2" in said
    assert "not as on a healthy build: outcome == committed 1/3" in said
    assert "set apart 1/3: " in said
    assert "no result 3/3: barge-in: it hung" in said
    assert "9 calls, 5 balance to the sample, 1 set apart, 3 without a result, broken off, " in said
    assert "Left out: barge-in-model: the barge-in can't land before the first frame" in said


def test_axes_that_do_not_vary_are_told_once(mixed: Table) -> None:
    assert mixed.varied == ("pacing", "at")
    text = " ".join(as_terminal(mixed).split())
    assert text.count("98.5 ms") == 1
    assert "unless said: 98.5 ms, 24000 Hz, reply 2995 ms" in text


def test_an_axis_that_only_scenarios_have_their_own_of_is_told_beside_the_name(
    sound: Analysis,
) -> None:
    cells = plan([BARGE_IN, UNINTERRUPTED, FIXED], {"pacing": ["burst", "realtime"]}).cells
    table = table_of([ran(cell, 1, sound) for cell in cells], cells)
    assert table.varied == ("pacing",)
    assert "interrupted-before-subscribed (at before-first-frame)\n  burst  " in as_terminal(table)
    assert "barge-in\n  burst  " in as_terminal(table)


def test_a_table_of_one_cell_has_its_name_on_its_row(sound: Analysis) -> None:
    cell = Cell(UNINTERRUPTED)
    lines = as_terminal(table_of([ran(cell, 1, sound)], (cell,))).splitlines()
    assert any(line.startswith("uninterrupted  ") and "committed" in line for line in lines)


def test_a_sweep_of_which_nothing_was_made_has_an_empty_table() -> None:
    table = table_of([], (Cell(BARGE_IN),), runs=4)
    assert table.rows == ()
    assert "0 calls, 0 balance to the sample, broken off, 4 not made." in as_terminal(table)
    assert json.loads(as_json(table))["complete"] is False


def test_the_markdown_table_has_as_many_cells_in_every_row(mixed: Table) -> None:
    rows = [line for line in as_markdown(mixed).splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(mixed.rows)
    assert len({line.replace("\\|", "").count("|") for line in rows}) == 1
    assert "| 20 (10–30) | 0 | 0 | committed" in " ".join(rows[2].split())


def test_the_json_document_holds_every_cell_and_call(mixed: Table) -> None:
    document = json.loads(as_json(mixed))
    assert document["schema"] == 1
    assert (document["made"], document["complete"]) == (9, False)
    first, second, third = document["cells"]
    assert first["leaked"] == {"count": 3, "median_ms": 20.0, "least_ms": 10.0, "most_ms": 30.0}
    assert [c["leaked_ms"] for c in first["calls"]] == [10.0, 20.0, 30.0]
    assert (first["scenario"], first["axes"]["at"]) == ("barge-in", 300)
    assert second["set_apart"][0]["unaccounted_samples"] != 0
    assert third["failed"] == {"barge-in: it hung": 3}
    assert third["leaked"] is None
    assert [c["error"] for c in third["calls"]] == ["barge-in: it hung"] * 3


# --- The command ---------------------------------------------------------------------------------


@pytest.fixture
def staged(
    sound: Analysis, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[[Scenario], str | None]], None]:
    """Has the command make no calls, which then fail as a function says."""

    def stage(fails: Callable[[Scenario], str | None]) -> None:
        call = Staged(Path(sound.trace.path), fails)
        monkeypatch.setattr(probe.cli.matrix, "run", partial(run, call=call))

    stage(lambda _: None)
    return stage


def test_it_runs_what_was_chosen_and_keeps_the_traces(
    staged: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = ["barge-in", "uninterrupted", "--pacing", "burst,stalled", "--runs", "2"]
    assert main(["sweep", *arguments, "--out", str(out), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(c["scenario"], c["axes"]["pacing"]) for c in document["cells"]] == [
        ("barge-in", "burst"), ("barge-in", "stalled"),
        ("uninterrupted", "burst"), ("uninterrupted", "stalled"),
    ]  # fmt: skip
    traces = [c["trace"] for cell in document["cells"] for c in cell["calls"]]
    assert len({*traces}) == 8
    assert all(Path(trace).is_relative_to(out) and Path(trace).is_file() for trace in traces)


def test_a_call_that_fails_is_a_row_and_exit_code_1(
    staged: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    staged(lambda scenario: "it hung" if scenario.name == "barge-in" else None)
    assert main(["sweep", "barge-in", "uninterrupted", "--out", str(tmp_path / "out")]) == 1
    out, err = capsys.readouterr()
    assert "no result: it hung" in out
    assert "3 calls" not in out
    assert "4 calls, 2 balance to the sample, 2 without a result." in out
    assert "4/4" in err


def test_what_fail_on_forbids_exits_with_3(staged: Any, tmp_path: Path) -> None:
    arguments = ["sweep", "barge-in", "--pacing", "burst", "--out", str(tmp_path / "out")]
    assert main([*arguments, "--fail-on", "leak-after-verdict>50ms"]) == 0
    assert main([*arguments, "--fail-on", "leak-after-verdict"]) == 3


def test_ctrl_c_keeps_what_was_done_and_prints_the_table(
    staged: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[str] = []

    def interrupted(scenario: Scenario) -> str | None:
        made.append(scenario.name)
        if len(made) == 3:
            raise KeyboardInterrupt
        return None

    staged(interrupted)
    arguments = ["sweep", "barge-in", "--pacing", "burst", "--runs", "5", "--jobs", "1"]
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 130
    assert "2 calls, 2 balance to the sample, broken off, 3 not made." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing-like-it"], "expected a scenario or a TOML file"),
        (["--pacing", "burst,slow"], "expected some of burst, realtime, stalled, found 'slow'"),
        (["--rate", "24000,fast"], "expected whole numbers, found 'fast'"),
        (["--at", "300,soon"], "expected milliseconds or some of before-first-frame"),
        (["--runs", "0"], "0 is not in the range"),
        (["--jobs", "0"], "0 is not in the range"),
        (["--rate", "1"], "expected at least one call that can be made, found none: "),
    ],
)
def test_wrong_usage_is_exit_code_2_and_makes_no_call(
    staged: Any, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in " ".join(err.split())


# --- For real ------------------------------------------------------------------------------------


@pytest.mark.livekit
def test_a_small_sweep_on_the_installed_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["programmatic", "uninterrupted", "--pacing", "burst", "--reply-ms", "995"]
    chosen = [*arguments, "--at", "300", "--jobs", "2", "--out", str(tmp_path)]
    assert main(["sweep", *chosen, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    first, second = document["cells"]
    assert (first["count"], second["count"]) == (1, 1)
    assert first["kinds"] == {"programmatic": 1}
    assert second["outcomes"] == {"no barge-in": 1}
    assert first["unaccounted_samples"] == second["unaccounted_samples"] == 0
    assert first["leaked"] is not None
    assert second["leaked"] is None


@pytest.mark.livekit
def test_another_thread_can_end_a_call(tmp_path: Path) -> None:
    stop = threading.Event()
    scenario = replace(UNINTERRUPTED, axes=replace(UNINTERRUPTED.axes, reply_ms=60_000))
    with pytest.raises(ScenarioError, match="stopped"):
        run_in_child(scenario, tmp_path, started=lambda _: stop.set(), stop=stop)
    assert json.loads((tmp_path / "uninterrupted.jsonl").read_text().splitlines()[-1])["event"] == (
        "trailer"
    )


def test_what_a_call_started_and_left_behind_ends_with_it(tmp_path: Path) -> None:
    code = (
        "import json, subprocess, sys\n"
        "left = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(left.pid))\n"
        "print(json.dumps({'sinkprobe': {'trace': 't', 'log': 'l', 'done': 'yes'}}), flush=True)\n"
    )
    command = [sys.executable, "-c", code]
    assert run_in_child(UNINTERRUPTED, tmp_path / "out", command=command).trace == Path("t")
    left = Path("/proc") / (tmp_path / "pid").read_text() / "stat"
    for _ in range(100):
        if not left.exists() or left.read_text().split()[2] == "Z":
            return
        time.sleep(0.1)
    raise AssertionError("what the call started is still there")


def test_calls_that_fail_alike_are_one_reason_wherever_their_traces_are(tmp_path: Path) -> None:
    def give_up(*_: Any, **__: Any) -> Outcome:
        raise ScenarioError("it hung", tmp_path / f"{time.monotonic_ns()}.jsonl")

    made = plan([CATALOGUE["barge-in"]], {})
    done = list(run(calls(made.cells, 2), tmp_path, call=give_up))
    assert [one.error for one in done] == ["it hung", "it hung"]
    assert "the trace up to there is" in str(ScenarioError("it hung", tmp_path))
