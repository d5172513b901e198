"""A trace of which lines were taken out, put in twice or made up is found out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from probe.trace.events import (
    Bookmarked,
    CancelSent,
    ContextSeen,
    ControlStarted,
    Event,
    FrameCaptured,
    Header,
    InterruptCalled,
    ItemCommitted,
    MessageOpened,
    OverlapJudged,
    PlaybackReported,
    ResponseCreated,
    RunSent,
    SilenceInserted,
    SinkMarked,
    SpeechCommitted,
    SpeechCreated,
    SpeechDone,
    Trailer,
)
from probe.trace.reader import Trace, read_trace
from probe.trace.writer import encode
from reports import analyze
from tests.report_traces import MS, Simulation, header, write


def sound_call() -> list[Event]:
    """Two replies with pauses and gaps; the second is cleared."""
    call = Simulation()
    call.events.append(SpeechCreated(0, "s1"))
    for _ in range(2):
        for _ in range(40):
            call.capture(480)
            call.tick(2)
        call.pause()
        call.tick(5)
        call.resume()
        call.tick(5)
        call.flush()
        call.tick(40)
    call.capture(4800)
    call.tick(3)
    call.clear()
    return call.end()


def closed(path: Path, lines: Sequence[Event], *, kinds: bool = True) -> Path:
    """A trace with a trailer that counts these lines, those of each kind as well if asked to."""
    counts = Counter({Header.NAME: 1}) + Counter(event.NAME for event in lines)
    trailer = Trailer(
        max(event.at_ns for event in lines),  # type: ignore[union-attr]
        len(lines) + 1,
        counts=dict(counts) if kinds else None,
    )
    path.write_text("".join(map(encode, [header(), *lines, trailer])), encoding="utf-8")
    return path


def resigned(path: Path, kept: Callable[[list[Event]], list[Event]]) -> Trace:
    """The sound call with other lines in it, and their number put into the trailer."""
    events = sound_call()
    lines = closed(path, events).read_text(encoding="utf-8").splitlines(keepends=True)
    trailer = json.loads(lines[-1])
    forged = [lines[0], *map(encode, kept(events))]
    trailer["events"] = len(forged)
    path.write_text("".join(forged) + json.dumps(trailer) + "\n", encoding="utf-8")
    return read_trace(path)


def told(trace: Trace) -> list[str]:
    return [f"{problem.kind}: {problem.text}" for problem in trace.problems]


def test_a_trailer_that_counts_each_kind_is_read(tmp_path: Path) -> None:
    trace = read_trace(closed(tmp_path / "call.jsonl", sound_call()))
    assert told(trace) == []
    assert analyze(trace).balanced is True


def test_a_trailer_that_does_not_is_read_as_before(tmp_path: Path) -> None:
    assert read_trace(closed(tmp_path / "call.jsonl", sound_call(), kinds=False)).complete


def doubled(kind: type[Event], only: int | None = None) -> Callable[[list[Event]], list[Event]]:
    def twice(events: list[Event]) -> list[Event]:
        of_kind = [event for event in events if isinstance(event, kind)]
        which = of_kind if only is None else [of_kind[only]]
        return [again for event in events for again in [event] * (1 + (event in which))]

    return twice


def without(kind: type[Event]) -> Callable[[list[Event]], list[Event]]:
    return lambda events: [event for event in events if not isinstance(event, kind)]


def half(events: list[Event]) -> list[Event]:
    return events[: len(events) // 2]


FORGED: dict[str, Callable[[list[Event]], list[Event]]] = {
    "marks doubled": doubled(SinkMarked),
    "an inserted doubled": doubled(SilenceInserted, 1),
    "no marks": without(SinkMarked),
    "half of it": half,
    "a mark for another": lambda events: [
        Bookmarked(event.at_ns, "x") if isinstance(event, SinkMarked) else event for event in events
    ],
}


@pytest.mark.parametrize("how", FORGED)
def test_a_trace_whose_number_of_lines_was_put_right_is_found_out(tmp_path: Path, how: str) -> None:
    trace = resigned(tmp_path / "call.jsonl", FORGED[how])

    assert any(text.startswith("count: the trailer counts") for text in told(trace))
    assert not trace.complete
    assert analyze(trace).balanced is None


def test_the_problem_says_of_which_kind_there_are_others(tmp_path: Path) -> None:
    trace = resigned(tmp_path / "call.jsonl", without(SinkMarked))
    assert told(trace) == ["count: the trailer counts 7 lines of 'mark', found 0"]


def test_silence_written_twice_is_found_without_counts(tmp_path: Path) -> None:
    events = doubled(SilenceInserted, 1)(sound_call())
    trace = read_trace(closed(tmp_path / "call.jsonl", events, kinds=False))
    assert "inconsistent: inserted: a stretch is written twice" in told(trace)


def test_lines_of_a_kind_this_version_does_not_know_are_counted(tmp_path: Path) -> None:
    path = closed(tmp_path / "call.jsonl", sound_call())
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    trailer = json.loads(lines[-1])
    trailer["events"] += 2
    trailer["counts"]["hummed"] = 2
    hum = '{"event":"hummed","at_ns":5}\n'
    for number in (1, 2, 3):
        path.write_text("".join([*lines[:-1], hum * number, json.dumps(trailer), "\n"]))
        kinds = [problem.kind for problem in read_trace(path).problems]
        assert ("count" in kinds) == (number != 2)


def test_lines_that_can_not_be_read_are_told_once(tmp_path: Path) -> None:
    """They are missing in the counts of their kinds, whatever these are."""
    path = closed(tmp_path / "call.jsonl", sound_call())
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    lines[5] = "x" + lines[5]
    path.write_text("".join(lines), encoding="utf-8")
    assert [problem.kind for problem in read_trace(path).problems if problem.kind == "count"] == []


# --- Speeches that nobody made -------------------------------------------------------------------

AT = 5 * MS

NAMING: list[Event] = [
    FrameCaptured(AT, 1, 0, 480, 24_000, 1, "s2"),
    SinkMarked(AT, "flush", "s2"),
    PlaybackReported(AT, "started", "s2"),
    InterruptCalled(AT, "s2"),
    SpeechCommitted(AT, "s2"),
    SpeechDone(AT, "s2"),
    OverlapJudged(AT, True, "s2"),
    ItemCommitted(AT, "i", "assistant", 4, speech="s2"),
    ControlStarted(AT, "s2"),
    ResponseCreated(AT, 1, 1, speech="s2"),
    MessageOpened(AT, "m", "s2"),
    CancelSent(AT, 1, "s2"),
    ContextSeen(AT, "local", speech="s2"),
]

NEVER = "missing: a speech was never created: 's2'"


@pytest.mark.parametrize("event", NAMING, ids=lambda event: event.NAME)
def test_a_speech_that_was_never_created_is_a_problem(tmp_path: Path, event: Event) -> None:
    def read(*events: Event, **head: Any) -> list[str]:
        return told(read_trace(write(tmp_path / "call.jsonl", events, head=header(**head))))

    one, two = SpeechCreated(0, "s1"), SpeechCreated(1, "s2")
    assert read(one, event) == [NEVER]
    assert read(one, two, event) == []
    # Order in the file is nothing to go by: several threads write.
    assert read(one, event, two) == []
    # There when the probe came, or not one that is known of.
    assert read(one, event, speeches=["s2"]) == []
    assert read(one, event, speeches=["s0"], options={"min_words": 0}) == [NEVER]
    # The session went on before the probe came, and an older trace does not say with what.
    assert read(one, event, options={"min_words": 0}) == []
    # A runtime that never says that a speech was made.
    assert read(event) == []


def test_code_that_feeds_the_sink_needs_no_speech(tmp_path: Path) -> None:
    frame = FrameCaptured(AT, 1, 0, 480, 24_000, 1, None)
    assert read_trace(write(tmp_path / "call.jsonl", [SpeechCreated(0, "s1"), frame])).complete


def test_each_speech_is_counted_once_and_the_first_line_given(tmp_path: Path) -> None:
    marks = [SinkMarked(AT + nth, "pause", f"s{nth % 3}") for nth in range(9)]
    trace = read_trace(write(tmp_path / "call.jsonl", [SpeechCreated(0, "s0"), *marks]))
    (problem,) = trace.problems
    assert (problem.line, problem.count) == (4, 2)
    assert problem.text == "a speech was never created: 's1'"


def test_a_run_that_was_moved_to_another_source_is_found_out(tmp_path: Path) -> None:
    events = sound_call()
    nth = next(i for i, event in enumerate(events) if isinstance(event, RunSent))
    run: Any = events[nth]
    events[nth] = RunSent(run.at_ns, run.until_ns, 2, run.start_sample, run.samples)
    trace = read_trace(write(tmp_path / "call.jsonl", events))
    assert "inconsistent: samples left a source that never took them" in told(trace)
