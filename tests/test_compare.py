"""Comparing builds: what counts, what is set apart, what can be told apart and what may be said."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probe.trace.events import ControlStarted, RunSent
from reports import Analysis
from reports.compare import (
    BuildFacts,
    Comparison,
    Difference,
    Measured,
    RunResult,
    compare,
)
from reports.compare.gates import NewGate, parse
from reports.compare.measures import MEASURES, order_of
from reports.compare.runs import why_set_apart
from reports.findings import RULES, Gate, SettingError
from reports.show import compare_json, compare_markdown, compare_terminal
from reports.units import time_ms
from tests.findings_calls import HandCall, at, barge_in, clean_call
from tests.report_traces import header

SCRIPTED = {"scenario": "barge-in-activity", "pacing": "stalled", "frame_ms": 20.0}


class Builds:
    """Runs of builds, made one by one; each a trace on disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.runs: dict[str, list[RunResult]] = {}

    def add(
        self, build: str, call: HandCall, run: dict[str, Any] | None = SCRIPTED, **fields: Any
    ) -> Analysis:
        folder = self._folder / build
        folder.mkdir(exist_ok=True)
        analysis = call.analysis(folder, head=header(run=run, **fields))
        self.runs.setdefault(build, []).append(RunResult(run, analysis))
        return analysis

    def leaks(self, build: str, *leaked_ms: float, **fields: Any) -> Builds:
        for ms in leaked_ms:
            self.add(build, barge_in(plays_on=ms), **fields)
        return self

    def fails(self, build: str, reason: str, times: int = 1) -> Builds:
        self.runs.setdefault(build, []).extend([RunResult(SCRIPTED, None, reason)] * times)
        return self

    def compared(self, **options: Any) -> Comparison:
        return compare(self.runs, **options)


@pytest.fixture
def builds(tmp_path: Path) -> Builds:
    return Builds(tmp_path)


def leak(comparison: Comparison, nth: int = 0) -> Difference:
    return comparison.tables[0].against[nth].differences["leaked-sent"]


def unbalanced() -> HandCall:
    """A block is sent that nobody pushed."""
    return barge_in(plays_on=200).add(RunSent(at(1200), at(1210), 1, None, 240))


def terminal(comparison: Comparison) -> str:
    return " ".join(compare_terminal.render(comparison).split())


# --- What differs --------------------------------------------------------------------------------


def test_builds_that_lie_wholly_apart_are_told_apart_by_five_runs(builds: Builds) -> None:
    builds.leaks("old", 50, 60, 50, 50, 60).leaks("new", 0, 10, 0, 0, 0)
    found = leak(builds.compared())
    assert (found.verdict, found.change, found.better) == ("differs", -50, True)
    assert found.p == pytest.approx(2 / 252)
    # Leak at sent, stop time: two figures that vary, neither of which is a claim.
    assert found.p_corrected == pytest.approx(2 * 2 / 252)
    assert found.interval is not None
    assert found.interval.low < found.interval.high < 0
    assert "leaked at sent 50 ms less (better)" in terminal(builds.compared())


def test_the_same_figures_the_other_way_round_are_worse(builds: Builds) -> None:
    builds.leaks("old", 0, 10, 0, 0, 0).leaks("new", 50, 60, 50, 50, 60)
    found = leak(builds.compared())
    assert (found.verdict, found.change, found.better) == ("differs", 50, False)
    assert "leaked at sent 50 ms more (worse)" in terminal(builds.compared())


def test_builds_that_overlap_cannot_be_told_apart(builds: Builds) -> None:
    builds.leaks("old", 50, 60, 30, 40, 60).leaks("new", 40, 50, 30, 50, 60)
    comparison = builds.compared()
    found = leak(comparison)
    assert (found.verdict, found.better) == ("alike", None)
    assert found.interval is not None
    assert found.interval.low <= 0 <= found.interval.high
    assert "B against A: ~, can't be told apart" in terminal(comparison)


def test_what_only_the_correction_holds_back_is_alike_and_its_interval_says_so(
    builds: Builds,
) -> None:
    builds.leaks("old", 10, 20, 30, 50, 60).leaks("new", 40, 70, 80, 90, 100)
    found = leak(builds.compared())
    assert found.p is not None
    assert found.p_corrected is not None
    assert found.interval is not None
    assert found.p < 0.05 < found.p_corrected
    assert (found.verdict, found.better) == ("alike", None)
    assert found.interval.low <= 0 < found.interval.high


def test_where_no_run_differs_there_is_no_test_and_none_to_correct_for(builds: Builds) -> None:
    builds.leaks("old", *[50] * 5).leaks("new", *[50] * 5)
    against = builds.compared().tables[0].against[0]
    assert against.tested == 0
    assert {d.verdict for d in against.differences.values()} <= {"all-equal", "no-figure"}
    assert {d.p for d in against.differences.values()} == {None}


def test_a_difference_no_larger_than_the_resolution_is_none_and_said_to_be_there(
    builds: Builds,
) -> None:
    builds.leaks("old", *[50] * 5).leaks("new", *[60] * 5)
    comparison = builds.compared()
    found = leak(comparison)
    assert (found.verdict, found.change, found.better) == ("within-resolution", 10, None)
    assert found.resolution == 10
    assert "leaked at sent is 10 ms more (p 0.016), but exact to 10 ms only" in terminal(comparison)


def test_builds_that_differ_in_some_runs_only_differ_not_at_the_median(builds: Builds) -> None:
    blind = [barge_in(plays_on=ms).retap("sent", resolution_ns=None) for ms in [0] * 12 + [50] * 6]
    for call in [blind[0]] * 18:
        builds.add("old", call)
    for call in blind:
        builds.add("new", call)
    comparison = builds.compared()
    found = leak(comparison)
    assert (found.verdict, found.change, found.better) == ("within-resolution", 0, None)
    assert "leaked at sent is another (p 0.038), but not at the median" in terminal(comparison)


def test_where_the_resolution_is_not_known_a_difference_counts_as_it_stands(
    builds: Builds,
) -> None:
    for build, ms in (("old", 50), ("new", 60)):
        for _ in range(5):
            builds.add(build, barge_in(plays_on=ms).retap("sent", resolution_ns=None))
    assert leak(builds.compared()).verdict == "differs"


# --- Too few -------------------------------------------------------------------------------------


def test_three_against_three_are_too_few_and_it_says_how_many_would_decide(
    builds: Builds,
) -> None:
    builds.leaks("old", 200, 210, 220).leaks("new", 0, 10, 20)
    comparison = builds.compared()
    found = leak(comparison)
    assert (found.verdict, found.interval, found.runs_to_decide) == ("too-few-runs", None, 5)
    text = terminal(comparison)
    assert "too few runs to tell: leaked at sent, stop time" in text
    assert "5 of each build would decide where they lie wholly apart" in text
    assert "210 200–220" in text


def test_so_many_runs_as_it_asks_for_do_decide(builds: Builds) -> None:
    builds.leaks("old", 200, 210, 220).leaks("new", 0, 10, 20)
    wanted = leak(builds.compared()).runs_to_decide or 0
    builds.leaks("old", *[230] * (wanted - 3)).leaks("new", *[30] * (wanted - 3))
    assert leak(builds.compared()).verdict == "differs"


def test_one_build_with_one_run_compares_nothing_and_breaks_nothing(builds: Builds) -> None:
    builds.leaks("old", 200).leaks("new", 0)
    assert leak(builds.compared()).verdict == "too-few-runs"
    assert len(builds.leaks("newer", 10).compared().tables[0].against) == 2


# --- What does not count -------------------------------------------------------------------------


def test_a_run_that_does_not_balance_is_set_apart_and_in_no_figure(builds: Builds) -> None:
    builds.leaks("old", 50, 50).leaks("new", 50, 50)
    unsound = builds.add("new", unbalanced())
    assert unsound.balanced is False
    comparison = builds.compared()
    column = comparison.tables[0].columns[1]
    assert (column.asked, len(column.runs)) == (3, 2)
    figure = column.figures["leaked-sent"]
    assert figure is not None
    assert (figure.count, figure.most) == (2, 50)
    (apart,) = column.summary.set_apart
    assert "samples unaccounted for" in apart.reason
    assert "B: set apart: 240 samples unaccounted for" in terminal(comparison)


def test_a_run_without_its_barge_in_is_set_apart_where_the_scenario_needs_one(
    builds: Builds,
) -> None:
    builds.leaks("old", 50, 50).leaks("new", 50)
    never = builds.add("new", clean_call())
    assert not never.barge_ins
    needed = builds.compared(with_barge_in={"barge-in-activity"}).tables[0].columns[1]
    assert [apart.reason for apart in needed.summary.set_apart] == ["it never came to a barge-in"]
    assert len(needed.runs) == 1
    free = builds.compared(with_barge_in={"barge-in"}).tables[0].columns[1]
    assert len(free.runs) == 2
    assert why_set_apart(never) is None


def test_a_call_that_left_nothing_is_told_with_its_reason_and_the_others_count(
    builds: Builds,
) -> None:
    builds.leaks("old", *[50] * 5).leaks("new", *[0] * 3).fails("new", "it hung", 2)
    comparison = builds.compared()
    assert comparison.tables[0].columns[1].failed == {"it hung": 2}
    assert "B: no result 2/5: it hung" in terminal(comparison)
    assert "(runs: A 5, B 3)" in terminal(comparison)
    # A calls that could be made decides although B has two fewer.
    assert leak(comparison).p == pytest.approx(2 / 56)


def test_a_build_that_can_run_nothing_is_a_row_that_says_why(builds: Builds) -> None:
    builds.leaks("old", *[50] * 5).fails("new", "it has no interruption model", 5)
    comparison = builds.compared()
    assert comparison.tables[0].against == ()
    assert "B: no result 5/5: it has no interruption model" in terminal(comparison)


def test_a_build_that_is_not_there_is_named_and_the_others_are_compared(builds: Builds) -> None:
    builds.runs["gone"] = []
    builds.leaks("old", *[50] * 5).leaks("new", *[0] * 5)
    comparison = builds.compared(facts=[BuildFacts("gone", unavailable="no release fits")])
    assert [c.build for c in comparison.tables[0].columns] == ["old", "new"]
    assert comparison.tables[0].against[0].first == "old"
    for text in (terminal(comparison), compare_markdown.render(comparison)):
        assert "not available: no release fits" in text
        assert "C against B" in text


def test_where_one_build_is_left_nothing_is_said_to_be_alike(builds: Builds) -> None:
    builds.runs["gone"] = []
    builds.leaks("left", *[50] * 5)
    comparison = builds.compared(facts=[BuildFacts("gone", unavailable="no release fits")])
    text = terminal(comparison)
    assert "leaked at sent, ms" in text
    assert "on all builds" not in text
    assert "interval" not in text


@pytest.mark.parametrize("gone", ["first", "last"])
@pytest.mark.parametrize("gate", ["new:leak-after-verdict", "leak-after-verdict+10ms"])
def test_no_other_build_stands_in_for_one_that_a_gate_is_about(
    gate: str, gone: str, builds: Builds
) -> None:
    builds.runs["first"] = []
    builds.leaks("first" if gone == "last" else "middle", 0).leaks("middle", 0)
    builds.leaks("last" if gone == "first" else "middle", 50)
    builds.runs.setdefault("last", [])
    held = parse(gate)
    assert isinstance(held, NewGate)
    comparison = builds.compared(facts=[BuildFacts(gone, unavailable="no release fits")])
    (judged,) = held.judge(comparison)
    assert (judged.fails, judged.reason) == (False, f"{gone} has no run that counts")


_PIECES = st.sampled_from(
    [*RULES, "new", ":", "+", ">", "20", "1.5", "ms", "%", "samples", "worse", "error", "#"]
)


@settings(deadline=None)
@given(st.one_of(st.text(max_size=40), st.lists(_PIECES, max_size=6).map(" ".join)))
def test_any_text_is_a_gate_or_an_error_of_one_line_with_the_column(text: str) -> None:
    said = ""
    try:
        assert parse(text).text == text
    except SettingError as error:
        said = str(error)
    assert not said or re.search(r" \(column \d+ of .*\)$", said)
    assert len(said.splitlines()) < 2


def test_a_figure_that_grew_by_just_as_much_did_not_grow_by_more(builds: Builds) -> None:
    # In floats 60.042 less 50 is 10.042000000000002.
    builds.leaks("old", 1200 / 24).leaks("new", 1441 / 24)
    comparison = builds.compared()
    for gate, fails in (
        ("leak-after-verdict+10.042ms", False),
        ("leak-after-verdict+10.041ms", True),
    ):
        held = parse(gate)
        assert isinstance(held, NewGate)
        assert any(judged.fails for judged in held.judge(comparison)) is fails


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ((0,) * 5, (50,) * 5, (True, "worse: leaked at sent, stop time")),
        ((50,) * 5, (0,) * 5, None),
        ((50,) * 5, (50,) * 5, None),
        (
            (0,) * 2,
            (50,) * 2,
            (
                False,
                "too few runs to tell leaked at sent apart; too few runs to tell stop time apart",
            ),
        ),
    ],
)
def test_worse_fails_where_a_figure_is_told_apart_for_the_worse(
    before: tuple[int, ...],
    after: tuple[int, ...],
    said: tuple[bool, str] | None,
    builds: Builds,
) -> None:
    builds.leaks("old", *before).leaks("new", *after)
    held = parse("worse")
    assert not isinstance(held, Gate)
    judged = [(one.fails, one.reason) for one in held.judge(builds.compared())]
    assert judged == ([] if said is None else [said])


# --- One number a run ----------------------------------------------------------------------------


def test_calls_are_compared_with_the_same_call_only(builds: Builds) -> None:
    builds.leaks("old", 50).leaks("new", 50)
    builds.leaks("old", 10, run={**SCRIPTED, "pacing": "burst"})
    builds.leaks("new", 10, run={**SCRIPTED, "frame_ms": 10})
    calls = [dict(table.call.axes) for table in builds.compared().tables]
    assert calls == [
        {"pacing": "stalled", "frame_ms": 20.0},
        {"pacing": "burst", "frame_ms": 20.0},
        {"pacing": "stalled", "frame_ms": 10},
    ]


def test_what_all_calls_have_in_common_is_said_once(builds: Builds) -> None:
    common = {"frame_ms": 20.0, "reply_ms": 2995, "channels": 1, "close_ms": 40}
    for pacing in ("burst", "stalled"):
        run = {"scenario": "barge-in-activity", "pacing": pacing, **common}
        builds.leaks("old", 50, run=run).leaks("new", 50, run=run)
    for text in (terminal(builds.compared()), compare_markdown.render(builds.compared())):
        assert "All calls: 20 ms, reply 2995 ms, close 40 ms" in text
        assert "barge-in-activity, burst" in text


@pytest.mark.parametrize("value", ["soon", None, [1, {"a": 2}], 1e300, True])
def test_a_header_may_say_anything(builds: Builds, value: Any) -> None:
    run = {"scenario": value, "frame_ms": value, "pacing": value, "at": value}
    builds.leaks("old", 50, run=run).leaks("new", 50, run=run).leaks("new", 50)
    comparison = builds.compared()
    assert len(comparison.tables) == 2
    for render in (compare_terminal.render, compare_markdown.render, compare_json.render):
        assert render(comparison)


def test_a_call_is_the_same_whichever_runtime_wrote_its_numbers(builds: Builds) -> None:
    node = {"language": "node", "livekit": "0.13", "livekit_agents": "1.9.0"}
    builds.leaks("python", 50, run={**SCRIPTED, "frame_ms": 20.0})
    builds.leaks("node", 50, run={**SCRIPTED, "frame_ms": 20}, runtime=node)
    comparison = builds.compared()
    assert len(comparison.tables) == 1
    assert "livekit-agents 1.8.9, livekit 1.1.21, python" in terminal(comparison)
    assert "@livekit/agents 1.9.0, @livekit/rtc-node 0.13, node" in terminal(comparison)


def test_calls_nobody_scripted_form_one_table(builds: Builds) -> None:
    builds.leaks("old", 50, run=None).leaks("new", 30, run=None)
    builds.add("new", clean_call(), run=None)
    comparison = builds.compared(with_barge_in={"barge-in"})
    (table,) = comparison.tables
    assert table.call.scenario is None
    assert len(table.columns[1].runs) == 2
    assert "calls that were not scripted" in terminal(comparison)


def test_several_barge_ins_add_up_where_they_were_scripted_and_else_are_averaged(
    builds: Builds,
) -> None:
    for run, times in ((SCRIPTED, 2), (None, 1)):
        once = builds.add("any", barge_in(plays_on=50), run=run)
        twice = replace(once, barge_ins=once.barge_ins * 2)
        figures = {measure.name: measure.of(twice) for measure in MEASURES}
        assert figures["leaked-sent"] == 50 * times
        assert figures["leaked-pushed"] == 0
        assert figures["stop"] == (time_ms(once.barge_ins[0].stop_ns) or 0) * times


def test_the_figures_of_a_run_are_those_of_its_report(builds: Builds) -> None:
    analysis = builds.add("old", barge_in(plays_on=50))
    (run,) = builds.compared().tables[0].columns[0].runs
    (found,) = analysis.barge_ins
    assert found.leaked is not None
    sent, pushed = found.leaked["sent"], found.leaked["pushed"]
    assert sent is not None
    assert pushed is not None
    assert run.figures["leaked-sent"] == sent.ms == 50
    assert run.figures["leaked-pushed"] == pushed.ms == 0
    assert run.figures["stop"] == time_ms(found.stop_ns)
    assert run.figures["swallowed"] == 0
    assert run.figures["position"] == 0
    assert run.figures["control"] is None
    frames = builds.compared().tables[0].columns[0].frames["leaked-sent"]
    assert frames is not None
    assert frames.median == sent.frames


def test_the_position_error_is_the_furthest_off_of_all_segments(builds: Builds) -> None:
    call = clean_call().without("playback").finished(520, 450).finished(1510, 525, "s2")
    builds.add("old", call)
    (run,) = builds.compared().tables[0].columns[0].runs
    assert run.figures["position"] == 50


@pytest.mark.parametrize(("sent_ms", "whole"), [(500, 1.0), (400, 0.0)])
def test_the_control_is_one_where_it_arrived_whole(
    builds: Builds, sent_ms: float, whole: float
) -> None:
    call = barge_in()
    call.add(ControlStarted(at(999), "c"))
    call.created(1000, "c").capture(1001, 500, "c").push(1002, 500).mark(1003, "flush", "c")
    call.send(1010, sent_ms).done(1600, "c")
    builds.add("old", call)
    (run,) = builds.compared().tables[0].columns[0].runs
    assert run.figures["control"] == whole


def test_controls_are_compared_by_their_share(builds: Builds) -> None:
    def with_control(sent_ms: float) -> HandCall:
        call = barge_in().add(ControlStarted(at(999), "c"))
        call.created(1000, "c").capture(1001, 500, "c").push(1002, 500).mark(1003, "flush", "c")
        return call.send(1010, sent_ms).done(1600, "c")

    for sent_ms in (500, 500, 500, 500, 500, 500):
        builds.add("old", with_control(sent_ms))
    for sent_ms in (400, 400, 400, 400, 400, 500):
        builds.add("new", with_control(sent_ms))
    comparison = builds.compared()
    found = comparison.tables[0].against[0].differences["control"]
    assert found.change == pytest.approx(-5 / 6)
    assert found.interval is None
    assert found.verdict == "differs"
    assert found.better is False
    assert "control delivered in 83 of 100 runs fewer (worse)" in terminal(comparison)
    assert "control delivered 6/6 1/6 \N{MINUS SIGN}83 %" in terminal(comparison)


def test_a_figure_only_some_runs_have_is_taken_over_those_and_said_so(builds: Builds) -> None:
    builds.leaks("old", *[50] * 5).leaks("new", *[0] * 4)
    builds.add("new", clean_call())
    comparison = builds.compared()
    figure = comparison.tables[0].columns[1].figures["leaked-sent"]
    assert figure is not None
    assert figure.count == 4
    assert "B: leaked at sent is known in 4 of 5 runs" in terminal(comparison)


def test_a_figure_one_build_has_not_is_not_compared_and_said_so(builds: Builds) -> None:
    builds.leaks("old", *[50] * 5)
    for _ in range(5):
        builds.add("new", clean_call())
    comparison = builds.compared()
    assert leak(comparison) == Difference("no-figure")
    assert "not in both: leaked at pushed, leaked at sent, stop time" in terminal(comparison)


# --- What is counted -----------------------------------------------------------------------------


def test_the_order_of_the_marks_is_told_with_what_falls_together(builds: Builds) -> None:
    analysis = builds.add("old", barge_in())
    assert order_of(analysis) == "pause = verdict, source clear, commit, clear, resume"
    builds.add("new", barge_in().without("mark").mark(200, "pause").mark(302, "clear"))
    text = terminal(builds.compared())
    assert "order A pause = verdict, source clear, commit, clear, resume 1/1" in text
    assert "B pause = verdict, source clear, commit, clear 1/1" in text


def test_orders_of_every_build_are_parted_alike(builds: Builds) -> None:
    """Marks of an order are parted by commas, so orders are parted by semicolons: of the first
    build and of those that stand below it."""
    for build, clears in (("old", (302, 310)), ("new", (320, 330))):
        for at_ms in clears:
            call = barge_in().without("mark").mark(200, "pause").mark(at_ms, "clear")
            builds.add(build, call if at_ms < 330 else call.mark(340, "resume"))
        builds.add(build, barge_in())
    text = terminal(builds.compared())
    begin = text.index("order A")
    told = text[begin : text.index("findings", begin)]
    of_first, of_other = told.split(" B ")
    assert "; " in of_first
    assert "; " in of_other


def test_findings_of_one_build_only_are_named_with_how_many_runs_had_them(
    builds: Builds,
) -> None:
    builds.leaks("old", 0, 0).leaks("new", 0, 50)
    comparison = builds.compared()
    against = comparison.tables[0].against[0]
    assert (against.appeared, against.gone) == (("leak-after-verdict",), ())
    assert "found in B and not in A: leak-after-verdict 1/2" in terminal(comparison)


def test_a_finding_of_both_is_neither_new_nor_gone(builds: Builds) -> None:
    builds.leaks("old", 50).add("new", barge_in(plays_on=50).started(100))
    against = builds.compared().tables[0].against[0]
    assert (against.appeared, against.gone) == (("started-twice",), ())


# --- Chance --------------------------------------------------------------------------------------

MEASURED_MS = [
    50, 50, 40, 50, 40, 50, 50, 60, 50, 50, 60, 50, 40, 60, 50, 50, 40, 50, 30, 50, 40,
]  # fmt: skip
"""Leaked at sent in 21 calls of barge-in-activity, pacing realtime, on livekit-agents 1.8.9."""


def test_twice_the_same_build_cannot_be_told_apart_in_nineteen_of_twenty(builds: Builds) -> None:
    builds.leaks("any", *MEASURED_MS)
    dealer = random.Random(1)
    apart = 0
    for _ in range(200):
        dealt = dealer.sample(builds.runs["any"], 10)
        comparison = compare({"one": dealt[:5], "other": dealt[5:]})
        apart += any(
            difference.verdict == "differs"
            for difference in comparison.tables[0].against[0].differences.values()
        )
    assert apart <= 200 // 20


def test_five_runs_see_a_shift_of_four_blocks_whichever_they_are(builds: Builds) -> None:
    builds.leaks("old", *MEASURED_MS).leaks("new", *(ms + 40 for ms in MEASURED_MS))
    dealer = random.Random(1)
    for _ in range(100):
        dealt = {build: dealer.sample(runs, 5) for build, runs in builds.runs.items()}
        found = leak(compare(dealt))
        assert (found.verdict, found.better) == ("differs", False)


# --- How it looks --------------------------------------------------------------------------------


@pytest.fixture(params=[1, 2, 3, 5])
def several(request: pytest.FixtureRequest, builds: Builds) -> Comparison:
    """Builds with long names, figures of all kinds and every sort of remark."""
    for nth in range(request.param):
        name = f"livekit-agents @ git+https://host.example/agents.git@a-branch-with-a-name-{nth}"
        name = name.replace("/", "_")
        builds.leaks(name, 100.0 + nth, 295.4, 134.5 - nth, 0)
        builds.add(name, clean_call())
        builds.add(name, unbalanced())
        builds.fails(name, "a reason | with a bar, as long as reasons tend to be " * 2)
    return builds.compared(notes=["Traces: a folder"], complete=False)


def test_no_line_is_wider_than_eighty_columns(several: Comparison) -> None:
    text = compare_terminal.render(several)
    assert max(map(len, text.splitlines())) <= 80
    assert text.endswith("\n")
    assert "…\n" not in text


def test_figures_of_minutes_are_not_cut(builds: Builds) -> None:
    builds.leaks("old", *[0] * 5).leaks("new", *[50] * 5).leaks("newer", *[50] * 5)
    comparison = builds.compared()
    (table,) = comparison.tables
    minutes = Measured(5, 119_995.5, 60_000.0, 179_995.5)
    columns = tuple(
        replace(column, figures={**column.figures, "leaked-sent": minutes})
        for column in table.columns
    )
    for many in (2, 3):
        shown = replace(table, columns=columns[:many], against=table.against[: many - 1])
        long = replace(comparison, tables=(shown,))
        text = compare_terminal.render(long)
        assert max(map(len, text.splitlines())) <= 80
        assert text.count("119996 60000–179996") == many
        assert "+50" in text


def test_markdown_tables_have_as_many_cells_in_every_row(several: Comparison) -> None:
    text = compare_markdown.render(several)
    tables: list[list[int]] = [[]]
    for line in text.splitlines():
        if line.startswith("|"):
            tables[-1].append(line.replace("\\|", "").count("|"))
        elif tables[-1]:
            tables.append([])
    assert all(len(set(table)) <= 1 for table in tables)
    assert len([table for table in tables if table]) == 2


def test_markdown_begins_with_what_differs(builds: Builds) -> None:
    builds.leaks("old", *[50] * 5).leaks("new", *[0] * 5)
    first = compare_markdown.render(builds.compared()).splitlines()[0]
    assert first == (
        "- **barge-in-activity, stalled, B against A:** leaked at sent 50 ms less (better), "
        "stop time 40 ms less (better)"
    )


def test_the_document_says_everything_again_and_holds_no_number_that_is_none(
    several: Comparison,
) -> None:
    document = json.loads(
        compare_json.render(several), parse_constant=lambda name: pytest.fail(name)
    )
    assert document["schema"] == 1
    assert document["complete"] is False
    assert [m["name"] for m in document["measures"]] == [m.name for m in MEASURES]
    for build, column in zip(document["builds"], document["tables"][0]["columns"], strict=True):
        assert build["build"] == column["build"]
        assert len(column["runs"]) == 5
        assert len(column["summary"]["set_apart"]) == 1
        assert column["asked"] == 7


def test_a_users_text_brings_no_escape_into_a_terminal_and_no_mark_onto_a_page(
    builds: Builds,
) -> None:
    builds.leaks("o\x1b[31mld", 50).leaks("n|e*w*", 0)
    comparison = builds.compared(notes=["a <b>note</b>"])
    assert "\x1b" not in compare_terminal.render(comparison)
    page = compare_markdown.render(comparison)
    assert "\x1b" not in page
    assert "a \\<b\\>note\\</b\\>" in page
    assert "n\\|e\\*w\\*" in page
