"""Assertions: each kind holds on a call that is as it says, fails on one that is not, and is left
unjudged where the trace can't tell.

The call: a reply of 500 ms goes out from 10 ms on, the caller starts at 90 ms, the gate is closed
at 100 ms, a final transcript commits the speech at 120 ms, so the pause was the verdict.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import reports
from probe.errors import UsageError
from probe.trace.events import (
    ControlStarted,
    Event,
    FrameCaptured,
    FramePushed,
    LoopStalled,
    OverlapJudged,
    QueueCleared,
    RunSent,
    SinkMarked,
    SpeechCreated,
    SpeechDone,
    Tapped,
)
from reports import Analysis, ExpectationError, analyze, check, expect
from reports.assertions import AssertionSyntaxError, parse, reference, text
from reports.assertions.vocabulary import EVENTS, NAMES, WORDS
from tests.report_traces import MS, taps, write
from tests.test_barge_ins import cleared, commit, mark, reply, user


def late_frame(at_ms: float) -> Event:
    at = int(at_ms * MS)
    return FrameCaptured(at, 2, 12_000, 480, 24_000, 1, "s1", "cancelled", at + 1000)


def late_push(at_ms: float) -> Event:
    at = int(at_ms * MS)
    return FramePushed(
        at, 2, 1, 12_000, 480, 24_000, 1, captured=[(12_000, 480)], end="returned", ended_ns=at + 1
    )


def control(*, whole: bool) -> list[Event]:
    at = 1000 * MS
    return [
        SpeechCreated(at, "c", "generate_reply", user_initiated=False, allow_interruptions=True),
        ControlStarted(at, "c"),
        FrameCaptured(at + MS, 2, 12_000, 2400, 24_000, 1, "c", "returned", at + 2 * MS),
        FramePushed(
            at + MS, 2, 1, 12_000, 2400, 24_000, 1, captured=[(12_000, 2400)], end="returned",
            ended_ns=at + 2 * MS,
        ),
        RunSent(at + 10 * MS, at + (110 if whole else 60) * MS, 1, 12_000, 2400 if whole else 1200),
        SpeechDone(at + 200 * MS, "c"),
    ]  # fmt: skip


SEEN_AT: dict[str, tuple[type[Event], ...]] = {
    "captured": (FrameCaptured, SinkMarked),
    "pushed": (FramePushed, QueueCleared),
    "sent": (RunSent,),
}


def _is_of(event: Event, boundary: str) -> bool:
    """Whether the tap at a boundary is what sees an event."""
    if isinstance(event, Tapped):
        return event.boundary == boundary
    return isinstance(event, SEEN_AT.get(boundary, ()))


class Calls:
    """Calls like the one above, with something about them changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    def __call__(
        self,
        *more: Event,
        sent_ms: int = 110,
        pause_ms: float | None = 100,
        commit_ms: float | None = 120,
        clear_ms: float | None = 121,
        source_clear_ms: float | None = 122,
        resume_ms: float | None = 130,
        untapped: str = "",
        trailer: bool = True,
    ) -> Analysis:
        events: list[Event] = [*taps(), *reply(sent_ms=sent_ms)]
        events += [user(90, True), user(300, False)]
        named = ((pause_ms, "pause"), (clear_ms, "clear"), (resume_ms, "resume"))
        # The thread that marks writes in the order of its calls.
        for at_ms, name in sorted((at, name) for at, name in named if at is not None):
            events.append(mark(at_ms, name))  # type: ignore[arg-type]
        if commit_ms is not None:
            events += commit(commit_ms)
        if source_clear_ms is not None:
            events.append(cleared(source_clear_ms))
        self._count += 1
        path = self._folder / f"call-{self._count}.jsonl"
        events = [event for event in (*events, *more) if not _is_of(event, untapped)]
        return analyze(write(path, events, trailer=trailer))


@pytest.fixture
def calls(tmp_path: Path) -> Calls:
    return Calls(tmp_path)


def with_partial(analysis: Analysis) -> Analysis:
    return replace(analysis, barge_ins=(replace(analysis.barge_ins[0], partial=True),))


OVERLAP = OverlapJudged(110 * MS, True, "s1")
"""Makes the verdict the model's, and later than the pause."""

Changed = Callable[[Calls], Analysis]

BOTH_WAYS: dict[str, Changed] = {
    "verdict < clear": lambda c: c(OVERLAP, clear_ms=105),
    "clear < resume": lambda c: c(resume_ms=120.9),
    "onset < pause <= verdict < commit < clear < resume": lambda c: c(clear_ms=119),
    "pause == verdict": lambda c: c(pause_ms=None, clear_ms=120.5),
    "last_sent - verdict <= 20ms": lambda c: c(sent_ms=150),
    "verdict + 30 ms > last_sent": lambda c: c(sent_ms=150),
    "clear - commit < 0.005 s": lambda c: c(clear_ms=126),
    "commit - verdict - 15ms < 10ms": lambda c: c(commit_ms=130, clear_ms=131),
    "no capture after commit": lambda c: c(late_frame(125)),
    "no push after verdict": lambda c: c(late_frame(110), late_push(111)),
    "no send after source_clear": lambda c: c(sent_ms=150),
    "no pause after resume": lambda c: c(mark(140, "pause")),
    "no resume before clear": lambda c: c(mark(105, "resume")),
    "no flush": lambda c: c(mark(400, "flush")),
    "no late-frames": lambda c: c(late_frame(125)),
    "leaked.sent <= 10ms": lambda c: c(sent_ms=150),
    "leaked.sent <= 480 samples": lambda c: c(sent_ms=150),
    "leaked.pushed == 0": lambda c: c(late_frame(110), late_push(111)),
    "leaked.sent < after_onset.sent": lambda c: c(sent_ms=60),
    "causes.after_clear == 0": lambda c: c(sent_ms=150),
    "causes.queue_played_on > 0": lambda c: c(sent_ms=60),
    "stop <= 25ms": lambda c: c(sent_ms=150),
    "outcome == committed": lambda c: c(commit_ms=None, clear_ms=None),
    "outcome != resumed": lambda c: c(commit_ms=None, clear_ms=None),
    "kind == activity": lambda c: c(pause_ms=None),
    "barge_ins == 1": lambda c: c(*control(whole=True), user(1050, True), user(1100, False)),
    "unaccounted == 0": lambda c: c(RunSent(200 * MS, 210 * MS, 1, None, 240)),
    "balanced": lambda c: c(RunSent(200 * MS, 210 * MS, 1, None, 240)),
    "not partial": lambda c: with_partial(c()),
    "control.whole": lambda c: c(*control(whole=False)),
    "complete": lambda c: c(trailer=False),
    "#1 verdict < clear": lambda c: c(OVERLAP, clear_ms=105),
    "#committed verdict < clear": lambda c: c(commit_ms=None, clear_ms=None),
}
"""An assertion that holds of the call, and a call of which it does not."""


@pytest.mark.parametrize("assertion", BOTH_WAYS)
def test_it_holds_where_it_is_so_and_fails_where_it_is_not(calls: Calls, assertion: str) -> None:
    result = check(calls(*control(whole=True)) if "control" in assertion else calls(), assertion)
    assert result.holds is True, text([result])
    result = check(BOTH_WAYS[assertion](calls), assertion)
    assert result.holds is False, text([result])


NEVER_CAME: dict[str, Changed] = {
    "verdict < clear": lambda c: c(clear_ms=None),
    "clear < verdict": lambda c: c(clear_ms=None),
    "clear != verdict": lambda c: c(clear_ms=None),
    "resume - clear < 1s": lambda c: c(resume_ms=None),
    "leaked.sent <= 1s": lambda c: c(commit_ms=None, clear_ms=None),
    "no push after commit": lambda c: c(commit_ms=None, clear_ms=None),
    "no pause before commit": lambda c: c(commit_ms=None, clear_ms=None),
    "kind != overlap": lambda c: c(commit_ms=None, clear_ms=None),
    "last_sent < clear": lambda c: c(sent_ms=0),
    "control.whole": lambda c: c(),
}


@pytest.mark.parametrize("assertion", NEVER_CAME)
def test_what_never_came_makes_it_fail(calls: Calls, assertion: str) -> None:
    result = check(NEVER_CAME[assertion](calls), assertion)
    assert result.holds is False, text([result])
    said = result.checks[0].reason
    assert said.endswith("never came") or said == "there was no control reply"


NOT_JUDGED: dict[str, tuple[str, Changed]] = {
    "wire, leaked.sent == 0": ("nothing was counted at sent", lambda c: c(untapped="sent")),
    "wire, last_sent < clear": ("nothing was counted at sent", lambda c: c(untapped="sent")),
    "wire, stop < 1s": ("nothing was counted at sent", lambda c: c(untapped="sent")),
    "wire, causes.resumed == 0": ("nothing was counted at sent", lambda c: c(untapped="sent")),
    "wire, no send after verdict": ("nothing was counted at sent", lambda c: c(untapped="sent")),
    "wire, remaining > 0": ("nothing was counted at sent", lambda c: c(untapped="sent")),
    "wire, balanced": ("boundary was not tapped", lambda c: c(untapped="sent")),
    "source, no push after verdict": ("counted at pushed", lambda c: c(untapped="pushed")),
    "source, source_clear > clear": ("counted at pushed", lambda c: c(untapped="pushed")),
    "sink, pause < clear": ("nothing was counted at captured", lambda c: c(untapped="captured")),
    "sink, no flush": ("marks of the sink were not seen", lambda c: c(untapped="captured")),
    "cut, verdict < clear": ("the trace is incomplete", lambda c: c(clear_ms=None, trailer=False)),
    "cut, leaked.pushed == 0": ("the trace is incomplete", lambda c: c(trailer=False)),
    "cut, leaked.sent <= 30ms": ("the trace is incomplete", lambda c: c(trailer=False)),
    "cut, leaked.sent <= 15ms": ("the trace is incomplete", lambda c: c(trailer=False)),
    "cut, stop <= 30ms": ("the trace is incomplete", lambda c: c(trailer=False)),
    "cut, no push after verdict": ("the trace is incomplete", lambda c: c(trailer=False)),
    "cut, no flush": ("the trace is incomplete", lambda c: c(trailer=False)),
    "cut, barge_ins == 1": ("the trace is incomplete", lambda c: c(trailer=False)),
    "cut, unaccounted == 0": ("there is no balance", lambda c: c(trailer=False)),
    "cut, #2 verdict < clear": ("the trace is incomplete", lambda c: c(trailer=False)),
    "unsound, leaked.sent < 1s": (
        "does not balance",
        lambda c: c(RunSent(200 * MS, 210 * MS, 1, None, 240)),
    ),
}


@pytest.mark.parametrize("case", NOT_JUDGED)
def test_what_the_trace_cannot_tell_is_not_judged(calls: Calls, case: str) -> None:
    said, changed = NOT_JUDGED[case]
    result = check(changed(calls), case.split(", ", 1)[1])
    assert result.holds is None, text([result])
    assert said in result.checks[0].reason


@pytest.mark.parametrize(
    ("assertion", "holds"),
    [
        ("clear < verdict", False),
        ("leaked.sent <= 5ms", False),
        ("leaked.sent > 1 samples", True),
        ("barge_ins >= 1", True),
        ("barge_ins < 1", False),
        ("no pause after onset", False),
    ],
)
def test_what_more_of_the_trace_could_not_change_is_judged(
    calls: Calls, assertion: str, holds: bool
) -> None:
    assert check(calls(trailer=False), assertion).holds is holds


def test_a_comparison_missed_by_no_more_than_the_resolution_holds_and_says_so(
    calls: Calls,
) -> None:
    # 110 ms of audio from 10 ms on: two blocks go out after the verdict at 100 ms.
    analysis = calls()
    for assertion in ("leaked.sent <= 10ms", "leaked.sent <= 240 samples", "stop < 10ms"):
        result = check(analysis, assertion)
        assert result.holds is True
        assert "within the resolution of 10.0 ms" in result.checks[0].reason
    assert check(analysis, "leaked.sent == 0").holds is False
    assert check(calls(sent_ms=100), "no send after verdict").holds is True
    # Calls are stamped exactly: nothing is allowed for there.
    assert check(calls(clear_ms=99.999), "clear >= verdict").holds is False


def test_it_has_to_hold_for_every_barge_in_or_for_the_chosen_ones(calls: Calls) -> None:
    once = calls()
    late = replace(
        once.barge_ins[0], clear_ns=99_000_000, outcome="resumed", verdict_kind="overlap"
    )
    twice = replace(once, barge_ins=(once.barge_ins[0], late))
    result = check(twice, "verdict < clear")
    assert result.holds is False
    assert [c.holds for c in result.checks] == [True, False]
    assert [c.barge_in for c in result.checks] == [1, 2]
    for selector, holds in (("#1", True), ("#2", False), ("#committed", True), ("#overlap", False)):
        assert check(twice, f"{selector} verdict < clear").holds is holds
    assert check(twice, "#3 verdict < clear").checks[0].reason == (
        "there is no barge-in 3 in this trace, which has 2 barge-ins"
    )
    assert check(replace(once, barge_ins=()), "verdict < clear").holds is False
    assert check(replace(once, barge_ins=()), "no verdict").holds is True


def test_a_failure_shows_the_moment_it_is_about(calls: Calls) -> None:
    assert text([check(calls(sent_ms=150), "no send after clear")]) == (
        "  FAILS       no send after clear\n"
        "              30.0 ms (720 samples) sent after clear\n"
        "              ms from the verdict:\n"
        "                   +20.0  commit: the speech is interrupted\n"
        "                   +21.0  clear of the sink  <- clear\n"
        "                   +22.0  the source's queue is cleared\n"
        "                   +30.0  resume: the gate is open\n"
        "                   +30.0  first of it sent  <- send\n"
        "                   +50.0  last sample of the speech sent  <- send\n"
        "                  +200.0  the caller stops\n"
    )


def test_a_stall_of_the_loop_is_named_beside_a_failure(calls: Calls) -> None:
    stalled = LoopStalled(95 * MS, 119 * MS)
    shown = text([check(calls(stalled, OVERLAP, clear_ms=105), "verdict < clear")])
    assert "stood still for 24.0 ms" in " ".join(shown.split())


def test_expect_raises_with_the_moment_and_returns_results_where_all_holds(calls: Calls) -> None:
    results = expect(calls(), "verdict < clear", "leaked.pushed == 0")
    assert [r.assertion for r in results] == ["verdict < clear", "leaked.pushed == 0"]
    broken = calls(OVERLAP, clear_ms=105)
    with pytest.raises(ExpectationError) as caught:
        expect(broken, "leaked.pushed == 0", "verdict < clear", "commit < clear")
    assert isinstance(caught.value, AssertionError)
    assert [r.assertion for r in caught.value.results] == ["verdict < clear", "commit < clear"]
    message = str(caught.value)
    assert broken.trace.path in message
    assert "clear of the sink  <- clear" in message


def test_expect_is_not_met_by_what_nobody_looked_at(calls: Calls) -> None:
    with pytest.raises(ExpectationError, match=r"not judged +leaked\.sent == 0"):
        expect(calls(untapped="sent"), "leaked.sent == 0")


def test_a_result_is_plain_data(calls: Calls) -> None:
    result = check(calls(OVERLAP, clear_ms=105), "verdict < clear")
    assert json.loads(json.dumps(asdict(result)))["holds"] is False


# --- The language --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "column", "said"),
    [
        ("", 1, "expected a name or a number with its unit, found the end"),
        ("verdct < clear", 1, "found 'verdct' (verdict?)"),
        ("verdict", 8, "expected a comparison (< <= > >= == !=), found the end"),
        ("verdict clear", 9, "expected a comparison (< <= > >= == !=), found 'clear'"),
        ("verdict <", 10, "found the end"),
        ("verdict < clear clear", 17, "expected the end, found 'clear'"),
        ("verdict < 20ms", 11, "verdict is an instant: expected another, or a difference of two"),
        ("verdict < leaked.sent", 11, "found an amount of audio, leaked.sent"),
        ("leaked < 3ms", 1, "one of leaked.captured, leaked.pushed, leaked.sent, found 'leaked'"),
        ("leaked.sent < 3", 15, "expected a unit (ms, s or samples)"),
        ("leaked.sent < 3 parsecs", 17, "expected a unit (ms, s or samples), found 'parsecs'"),
        ("stop < 3 samples", 8, "expected a number in ms or s"),
        ("unaccounted <= 3ms", 16, "expected a number in samples"),
        ("barge_ins == 1ms", 14, "expected a whole number without a unit"),
        ("barge_ins == 1.5", 14, "expected a whole number without a unit"),
        ("verdict + clear < 1s", 11, "expected a length of time after '+', found an instant"),
        ("leaked.sent - leaked.pushed == 0", 13, "an amount of audio is not added up"),
        ("kind < 3", 6, "expected == or !=, found '<'"),
        ("outcome == over", 12, "expected one of committed, resumed, finished, ignored"),
        ("kind", 5, "expected == or !=, found the end"),
        ("verdict < kind", 11, "kind is a word: it stands alone"),
        ("not verdict", 5, "expected one of partial, balanced, complete, control.whole"),
        ("no", 3, "expected a rule or one of capture, push"),
        ("no capture", 11, "expected after and an instant, found the end"),
        ("no push before clear", 9, "expected after and an instant, found 'before'"),
        ("no push after finished", 15, "expected one of onset, pause, verdict, commit, clear"),
        ("no pause after", 15, "found the end"),
        ("no verdict after clear", 12, "expected the end, found 'after'"),
        ("no late-framez", 4, "expected a rule, found 'late-framez' (late-frames?)"),
        ("#0 no pause", 2, "expected the number of a barge-in from 1"),
        ("#soon no pause", 2, "expected the number of a barge-in from 1"),
        ("#1 # no pause", 4, "expected a name or a number with its unit, found '#'"),
        ("#1 control.whole", 1, "this is about the whole trace"),
        ("3ms < 4ms", 1, "found only numbers"),
        ("new:late-frames", 1, "expected a name or a number with its unit, found 'new'"),
        ("leaked.sent < 20%", 15, "expected a unit (ms, s or samples), found '%'"),
        ("verdict < if", 11, "expected a name or a number with its unit, found 'if'"),
        ("clear-late-frames < 3ms", 7, "found 'late-frames'"),
        ("a $ b", 3, "expected a name, a number or a comparison, found '$'"),
        ("verdict < \u0663ms", 11, "found '\u0663'"),
        ("no pause " * 200, 1, "expected at most 1000 characters"),
    ],
)
def test_a_wrong_assertion_is_one_line_with_the_column(wrong: str, column: int, said: str) -> None:
    with pytest.raises(AssertionSyntaxError) as caught:
        parse(wrong)
    message = str(caught.value)
    assert said in message
    assert f"column {column}:" in message
    assert caught.value.position == column - 1
    assert "\n" not in message
    assert isinstance(caught.value, UsageError)


def test_every_word_can_be_said_and_a_difference_needs_no_spaces(calls: Calls) -> None:
    for name, words in WORDS.items():
        for word in words:
            parse(f"{name} != {word}")
            parse(f"#{word} verdict < clear")
    assert check(calls(), "clear-verdict<1s").holds is True


WORDS_OF_IT = (
    *NAMES, *EVENTS, *WORDS["kind"], *WORDS["outcome"], "no", "not", "after", "before", "#", "<",
    "<=", ">", ">=", "==", "!=", "+", "-", "0", "1", "2.5", "20", "ms", "s", "samples", "20ms",
    "late-frames",
)  # fmt: skip


@settings(deadline=None)
@given(st.text(max_size=60))
@example("\x00")
@example("verdict < clear\n")
def test_any_text_is_an_assertion_or_a_syntax_error(anything: str) -> None:
    wrong: AssertionSyntaxError | None = None
    try:
        parse(anything)
    except AssertionSyntaxError as error:
        wrong = error
    assert wrong is None or 0 <= wrong.position <= len(anything)
    assert len(str(wrong).splitlines()) == 1


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> list[Analysis]:
    calls = Calls(tmp_path_factory.mktemp("subjects"))
    return [
        calls(),
        calls(late_frame(125), sent_ms=150, clear_ms=None, trailer=False),
        calls(pause_ms=None, commit_ms=None, clear_ms=None, untapped="sent"),
        calls(RunSent(200 * MS, 210 * MS, 1, None, 240)),
        calls(untapped="captured"),
    ]


@settings(deadline=None)
@given(words=st.lists(st.sampled_from(WORDS_OF_IT), max_size=8))
@example(words=["leaked.sent", ">", "0"])
def test_whatever_can_be_said_is_answered(subjects: list[Analysis], words: list[str]) -> None:
    try:
        assertion = parse(" ".join(words))
    except AssertionSyntaxError:
        return
    for subject in subjects:
        result = check(subject, assertion)
        assert result.checks
        assert (result.holds is True) == all(c.holds is True for c in result.checks)
        assert all(c.reason for c in result.checks)
        assert all(
            len(line) <= 80 or " " not in line.strip() for line in text([result]).split("\n")
        )


def _chains(names: list[str]) -> st.SearchStrategy[str]:
    name = st.sampled_from(names)
    compare = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
    return st.tuples(name, compare, name, compare, name).map(" ".join)


INSTANTS = [name.name for name in NAMES.values() if name.type == "instant"]


@settings(deadline=None)
@given(assertion=_chains(INSTANTS))
def test_a_chain_of_instants_holds_as_each_of_its_links_does(
    subjects: list[Analysis], assertion: str
) -> None:
    first, one, second, two, third = assertion.split()
    links = [f"{first} {one} {second}", f"{second} {two} {third}"]
    for subject in subjects:
        held = [check(subject, link).holds for link in links]
        expected = False if False in held else None if None in held else True
        assert check(subject, assertion).holds is expected


def test_the_reference_names_all_that_can_be_said() -> None:
    told = {name: meaning for group in reference().values() for name, meaning in group.items()}
    assert set(NAMES) <= set(told)
    assert all(told.values())


def test_reports_offers_it() -> None:
    assert reports.check is check
    assert reports.expect is expect


def test_every_name_is_read_or_says_why_not(subjects: list[Analysis]) -> None:
    for subject in subjects:
        for name in NAMES.values():
            for barge_in in subject.barge_ins:
                reading: Any = name.read(subject, barge_in)
                values = (reading.ns, reading.samples, reading.number, reading.word, reading.flag)
                assert reading.absent == all(value is None for value in values), name.name
