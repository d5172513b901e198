"""Whatever is in a file, it ends as a trace with problems or as one clear line."""

from __future__ import annotations

import json
import tempfile
import typing
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from probe.errors import TraceError
from probe.trace.events import (
    EVENTS,
    CaptureEnded,
    Event,
    FrameCaptured,
    FramePushed,
    Header,
    PushEnded,
    PushMatched,
    RunSent,
    SilenceInserted,
    Trailer,
)
from probe.trace.reader import Trace, TraceParser, read_trace
from probe.trace.writer import encode

BLOCK_NS = 10_000_000

FOLDED = (CaptureEnded, PushEnded, PushMatched)
SMALL = st.integers(0, 10**9)

unhurried = settings(deadline=None)
"""A machine with other work takes its time over the first example."""


@pytest.fixture(scope="module")
def path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "call.jsonl"


def value(event: type[Event], name: str, hint: Any) -> st.SearchStrategy[Any]:
    """Values a field of an event may have."""
    if hint is int:
        if name in ("rate_hz", "frame", "push", "source"):
            return st.integers(1, 10**6)
        return st.integers(1, 1024) if name == "channels" else SMALL
    if hint is str:
        return st.text(max_size=12)
    if hint is bool:
        return st.booleans()
    if hint is float:
        return st.floats(allow_nan=False, allow_infinity=False)
    if name == "captured":
        pair = st.tuples(st.none() | SMALL, SMALL)
        ranges = st.lists(pair, max_size=3)
        return ranges if event is PushMatched else st.none() | ranges
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return st.sampled_from(arguments)
    if origin is list:
        return st.lists(value(event, name, arguments[0]), max_size=3)
    if origin is tuple:
        return st.tuples(*(value(event, name, argument) for argument in arguments))
    if origin is dict:
        values = st.text(max_size=5)
        if arguments[1] is Any:
            values |= st.none() | st.booleans() | SMALL | st.floats(-1e9, 1e9)
        return st.dictionaries(st.text(max_size=5), values, max_size=3)
    if type(None) in arguments:
        (bare,) = (argument for argument in arguments if argument is not type(None))
        if bare is int and name in ("rate_hz", "channels", "source", "sink"):
            return st.none() | st.integers(1, 1024)
        return st.none() | value(event, name, bare)
    raise AssertionError(hint)


def events_of(event: type[Event]) -> st.SearchStrategy[Event]:
    hints = typing.get_type_hints(event)
    values = {field.name: value(event, field.name, hints[field.name]) for field in fields(event)}
    return st.builds(event, **values)


ANY_EVENT: st.SearchStrategy[Event] = st.one_of(
    [events_of(event) for event in EVENTS.values() if event not in (Header, Trailer)]
)


@st.composite
def sound_traces(draw: st.DrawFn) -> list[bytes]:
    """Lines of a trace without a fault: numbers and positions fit, the trailer counts."""
    lines = [encode(Header(1, 0, 1.5, ["captured", "pushed", "sent"])).encode()]
    at_ns, frames, captured, pushed, sent = 0, 0, 0, 0, 0
    for _ in range(draw(st.integers(0, 12))):
        at_ns += draw(st.integers(0, 50_000_000))
        samples = draw(st.integers(1, 2000))
        kind = draw(st.sampled_from(["frame", "sent", "inserted", "other"]))
        batch: list[Event] = []
        if kind == "frame":
            frames += 1
            late = draw(st.booleans())
            end = None if late else ("returned", at_ns)
            batch.append(
                FrameCaptured(at_ns, frames, captured, samples, 24000, 1, "speech", *(end or ()))
            )
            ranges = [(captured, samples)]
            batch.append(
                FramePushed(
                    at_ns, frames, 1, pushed, samples, 24000, 1, captured=None if late else ranges
                )
            )
            if late:
                batch.append(CaptureEnded(at_ns, frames, "returned"))
                batch.append(PushMatched(at_ns, frames, ranges))
            captured += samples
            pushed += samples
        elif kind in ("sent", "inserted"):
            # No more leaves than was pushed, and at no more than its pace.
            samples = min(samples, pushed - sent) if kind == "sent" else samples
            if not samples:
                continue
            until_ns = at_ns + -(-samples // 240) * BLOCK_NS
            if kind == "sent":
                batch.append(RunSent(at_ns, until_ns, 1, sent, samples))
                sent += samples
            else:
                batch.append(SilenceInserted(at_ns, until_ns, 1, samples))
            at_ns = until_ns + BLOCK_NS
        else:
            batch.append(draw(events_of(EVENTS[draw(st.sampled_from(["bookmark", "state"]))])))
            object.__setattr__(batch[-1], "at_ns", at_ns)
        lines.extend(encode(event).encode() for event in batch)
    lines.append(encode(Trailer(at_ns, len(lines))).encode())
    return lines


def outcome(path: Path, data: bytes) -> Trace | TraceError:
    """Reads it; anything but the one error fails the test."""
    path.write_bytes(data)
    failure: TraceError | None = None
    try:
        trace = read_trace(path)
    except TraceError as error:
        failure = error
    if failure is not None:
        assert "\n" not in str(failure)
        assert len(str(failure)) < 500
        return failure
    for problem in trace.problems:
        assert "\n" not in problem.text
        assert len(problem.text) < 500
        assert 0 <= problem.line <= trace.lines + 1
        assert problem.count >= 1
    assert trace.complete or trace.problems
    times = [event.at_ns for event in trace.all_events()]  # type: ignore[union-attr]
    assert times == sorted(times)
    return trace


@unhurried
@given(st.binary(max_size=300))
def test_arbitrary_bytes(path: Path, data: bytes) -> None:
    outcome(path, data)


@unhurried
@given(st.lists(st.binary(max_size=60), max_size=6))
def test_arbitrary_bytes_after_a_header(path: Path, lines: list[bytes]) -> None:
    header = encode(Header(1, 0, 1.5)).encode()

    trace = outcome(path, header + b"\n".join(lines))
    assert isinstance(trace, Trace)
    assert not trace.complete


@unhurried
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["event", "at_ns", "samples", "captured"]) | st.text(max_size=3),
                inner | st.sampled_from(list(EVENTS)),
                max_size=5,
            )
        ),
        max_leaves=12,
    )
)
def test_arbitrary_json_after_a_header(path: Path, document: Any) -> None:
    header = encode(Header(1, 0, 1.5)).encode()

    assert isinstance(outcome(path, header + json.dumps(document).encode() + b"\n"), Trace)


@unhurried
@given(st.lists(ANY_EVENT, max_size=8))
def test_every_event_comes_back_as_it_was_written(path: Path, events: list[Event]) -> None:
    lines = [encode(event).encode() for event in (Header(1, 0, 1.5), *events)]
    trace = outcome(path, b"".join(lines))

    assert isinstance(trace, Trace)
    # Random frames contradict each other; what each line says is kept all the same.
    columned = (FrameCaptured, FramePushed, RunSent, SilenceInserted, *FOLDED)
    rare = [event for event in events if not isinstance(event, columned)]
    assert list(trace.events) == sorted(rare, key=lambda event: event.at_ns)  # type: ignore[union-attr]
    frames = {event.frame for event in events if isinstance(event, FrameCaptured)}
    assert set(trace.captured.frame.tolist()) == frames


@unhurried
@given(sound_traces())
def test_sound_traces_are_complete(path: Path, lines: list[bytes]) -> None:
    trace = outcome(path, b"".join(lines))

    assert isinstance(trace, Trace)
    assert trace.problems == ()
    assert trace.complete


@unhurried
@given(sound_traces(), st.data())
def test_lost_and_doubled_lines_are_always_noticed(
    path: Path, lines: list[bytes], data: st.DataObject
) -> None:
    index = data.draw(st.integers(1, len(lines) - 1))
    doubled = data.draw(st.booleans())
    changed = lines[:index] + (lines[index : index + 1] * 2 if doubled else []) + lines[index + 1 :]

    trace = outcome(path, b"".join(changed))
    assert isinstance(trace, Trace)
    assert not trace.complete


@unhurried
@given(sound_traces(), st.data())
def test_swapped_lines_never_raise(path: Path, lines: list[bytes], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(lines))))
    swapped = [lines[index] for index in order]

    read = outcome(path, b"".join(swapped))
    assert isinstance(read, Trace) == (order[0] == 0)
    if isinstance(read, Trace) and order[-1] != len(lines) - 1:
        assert not read.complete


@unhurried
@given(sound_traces(), st.data())
def test_flipped_bytes_never_raise(path: Path, lines: list[bytes], data: st.DataObject) -> None:
    text = bytearray(b"".join(lines))
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))

    outcome(path, bytes(text))


ODD = st.sampled_from(
    [None, True, -1, 0, 1, 0.5, 1e300, "", "1", [], {}, [[0, 1]]]
) | st.sampled_from([2**31, 2**53, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30])


@unhurried
@given(sound_traces(), st.data())
def test_odd_values_in_fields_never_raise(
    path: Path, lines: list[bytes], data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(lines) - 1))
    values = json.loads(lines[index])
    event = EVENTS[values["event"]]
    name = data.draw(st.sampled_from([field.name for field in fields(event)]))
    if data.draw(st.booleans()):
        values[name] = data.draw(ODD)
    else:
        values.pop(name, None)
    lines[index] = json.dumps(values).encode() + b"\n"

    read = outcome(path, b"".join(lines))
    required = [field.name for field in fields(event) if field.default is MISSING]
    if name not in values and name in required and name not in HAS_FACTORY:
        assert isinstance(read, TraceError) if index == 0 else not read.complete  # type: ignore[union-attr]


HAS_FACTORY = ("boundaries", "missing", "runtime", "options", "labels")


@unhurried
@given(sound_traces(), st.integers(0, 2000), st.booleans())
def test_cut_traces_keep_what_was_whole(
    path: Path, lines: list[bytes], length: int, packed: bool
) -> None:
    whole = b"".join(lines)
    data = zstandard.compress(whole) if packed else whole
    read = outcome(path, data[:length])

    if isinstance(read, Trace) and not read.complete:
        assert [problem.kind for problem in read.problems] == ["cut"]


@settings(unhurried, max_examples=50)
@given(sound_traces(), st.lists(st.integers(1, 200), min_size=1, max_size=30))
def test_pieces_of_any_length_give_the_same_trace(
    path: Path, lines: list[bytes], sizes: list[int]
) -> None:
    data = b"".join(lines)
    whole = outcome(path, data)
    parser = TraceParser(path)
    start = step = 0
    while start < len(data):
        parser.feed(data[start : start + sizes[step % len(sizes)]])
        start += sizes[step % len(sizes)]
        step += 1
    parser.close()

    assert isinstance(whole, Trace)
    assert list(parser.trace().all_events()) == list(whole.all_events())
    assert parser.trace().problems == whole.problems
