"""What a reader makes of a trace: columns, events, and problems instead of exceptions."""

from __future__ import annotations

import json
import os
import re
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from probe.errors import TraceError
from probe.trace.compress import compress_trace
from probe.trace.events import (
    Bookmarked,
    CaptureEnded,
    Event,
    FrameCaptured,
    FramePushed,
    Header,
    LoopStalled,
    PushEnded,
    PushMatched,
    RunSent,
    SilenceInserted,
    SinkMarked,
    Trailer,
)
from probe.trace.reader import NONE, Trace, TraceParser, read_trace
from probe.trace.writer import MAX_LINE_BYTES, encode
from reports import analyze

MS = 1_000_000

HEADER = Header(1, 10**12, 1.7e9, ["captured", "pushed", "sent"], labels={"room": "a"})

EVENTS: list[Event] = [
    FrameCaptured(1 * MS, 1, 0, 480, 24000, 1, "speech_1", "returned", 2 * MS),
    FramePushed(1 * MS, 1, 1, 0, 480, 24000, 1, captured=[(0, 480)], end="returned"),
    FrameCaptured(20 * MS, 2, 480, 480, 24000, 1, "speech_1", "raised", 21 * MS, "ValueError", 7),
    SinkMarked(20 * MS, "clear", "speech_1"),
    FramePushed(22 * MS, 2, 1, 480, 480, 24000, 1, captured=[(None, 80), (480, 400)]),
    RunSent(5 * MS, 25 * MS, 1, 0, 480),
    RunSent(25 * MS, 30 * MS, 1, None, 120),
    SilenceInserted(30 * MS, 50 * MS, 1, 480),
    Bookmarked(60 * MS, "here"),
]

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes lines (events, texts or bytes) between a header and a fitting trailer."""

    def written(*lines: Event | str | bytes, head: Any = HEADER, trailer: Any = True) -> Path:
        path = tmp_path / "call.jsonl"
        parts = [head, *lines]
        if trailer is True:
            trailer = Trailer(10**9, len(parts))
        if trailer is not None:
            parts.append(trailer)
        with path.open("wb") as file:
            for part in parts:
                if isinstance(part, str):
                    part = part.encode()
                file.write(part if isinstance(part, bytes) else encode(part).encode())
        return path

    return written


def kinds(trace: Trace) -> list[str]:
    return [problem.kind for problem in trace.problems]


def error_of(path: Path) -> str:
    with pytest.raises(TraceError) as caught:
        read_trace(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    assert "expected" in message
    return message


# What a sound trace becomes


def test_sound_trace_comes_out_as_it_went_in(write: Write) -> None:
    trace = read_trace(write(*EVENTS))

    assert trace.complete
    assert trace.problems == ()
    assert trace.header == HEADER
    assert trace.trailer == Trailer(10**9, len(EVENTS) + 1)
    assert trace.lines == len(EVENTS) + 2
    assert trace.last_ns == 10**9
    assert sorted(trace.all_events(), key=repr) == sorted(EVENTS, key=repr)


def test_frequent_events_are_columns_and_rare_ones_objects(write: Write) -> None:
    trace = read_trace(write(*EVENTS))

    assert trace.events == (EVENTS[3], EVENTS[8])
    assert trace.event_lines.tolist() == [5, 10]
    captured = trace.captured
    assert captured.line.tolist() == [2, 4]
    assert captured.start_sample.tolist() == [0, 480]
    assert [trace.text(index) for index in captured.speech] == ["speech_1", "speech_1"]
    assert [trace.text(index) for index in captured.error] == [None, "ValueError"]
    assert captured.end.tolist() == [0, 2]
    assert captured.data_bytes.tolist() == [NONE, 7]
    pushed = trace.pushed
    assert pushed.range_offset.tolist() == [0, 1, 3]
    assert pushed.range_start.tolist() == [0, NONE, 480]
    assert pushed.range_samples.tolist() == [480, 80, 400]
    assert pushed.end.tolist() == [0, -1]
    assert pushed.ended_ns.tolist() == [NONE, NONE]
    assert trace.sent.start_sample.tolist() == [0, NONE]
    assert trace.inserted.until_ns.tolist() == [50 * MS]
    assert len(captured) == len(pushed) == len(trace.sent) == 2


def test_columns_cannot_be_changed(write: Write) -> None:
    trace = read_trace(write(*EVENTS))

    with pytest.raises(ValueError, match="read-only"):
        trace.captured.samples[0] = 1


def test_events_are_sorted_by_time_and_ties_keep_the_order_of_the_file(write: Write) -> None:
    trace = read_trace(
        write(
            Bookmarked(5, "b"),
            FrameCaptured(5, 2, 1, 1, 8000, 1),
            Bookmarked(5, "c"),
            FrameCaptured(4, 1, 0, 1, 8000, 1),
            Bookmarked(1, "a"),
        )
    )

    assert trace.complete
    assert [event.name for event in trace.events if isinstance(event, Bookmarked)] == list("abc")
    assert trace.captured.frame.tolist() == [1, 2]
    assert [type(event).__name__[0] for event in trace.all_events()] == ["B", "F", "B", "F", "B"]


def test_what_became_known_later_is_folded_in(write: Write) -> None:
    trace = read_trace(
        write(
            FrameCaptured(1, 1, 0, 10, 8000, 1),
            FrameCaptured(2, 2, 10, 10, 8000, 1),
            FramePushed(3, 1, 1, 0, 10, 8000, 1, captured=[(0, 10)], ambiguous_samples=2),
            FramePushed(4, 2, 1, 10, 10, 8000, 1),
            FramePushed(5, 3, 1, 20, 10, 8000, 1),
            PushMatched(6, 2, [(10, 4), (None, 6)], 5),
            PushEnded(7, 3, "raised", "RuntimeError", accepted=False),
            CaptureEnded(8, 2, "cancelled"),
        )
    )

    assert trace.complete
    assert trace.events == ()
    assert trace.captured.end.tolist() == [-1, 1]
    assert trace.captured.ended_ns.tolist() == [NONE, 8]
    assert trace.pushed.accepted.tolist() == [True, True, False]
    assert trace.pushed.matched.tolist() == [True, True, False]
    assert trace.pushed.ambiguous_samples.tolist() == [2, 5, 0]
    assert trace.pushed.range_offset.tolist() == [0, 1, 3, 3]
    assert trace.pushed.range_start.tolist() == [0, 10, NONE]
    assert trace.pushed.range_samples.tolist() == [10, 4, 6]
    assert trace.text(trace.pushed.error[2]) == "RuntimeError"


def test_push_refused_late_keeps_its_room_or_gives_it_back(write: Write) -> None:
    refused = PushEnded(9, 1, "raised", accepted=False)
    first = FramePushed(1, 1, 1, 0, 10, 8000, 1)

    assert read_trace(write(first, FramePushed(2, 2, 1, 10, 10, 8000, 1), refused)).complete
    assert read_trace(write(first, FramePushed(2, 2, 1, 0, 10, 8000, 1), refused)).complete


ROOMS: list[tuple[list[tuple[int, bool]], bool]] = [
    # Start of each push of 10 samples and whether it was accepted; whether that is sound.
    ([(0, True), (10, False), (10, True)], True),
    ([(0, False), (10, False), (20, True), (30, True)], True),
    ([(0, False), (10, False), (10, True), (20, True)], True),
    ([(0, False), (10, False), (0, True), (10, True)], True),
    ([(0, True), (10, False), (20, True), (30, False), (30, True)], True),
    ([(0, True), (10, False), (25, True)], False),
    ([(0, True), (10, False), (15, True)], False),
    ([(0, True), (10, True), (10, False), (5, True)], False),
    ([(0, True), (20, True)], False),
    ([(0, False), (20, True)], False),
]


@pytest.mark.parametrize(("rooms", "sound"), ROOMS)
def test_room_of_refused_pushes_is_nobodys_however_many_follow(
    write: Write, rooms: list[tuple[int, bool]], sound: bool
) -> None:
    pushes = [
        FramePushed(nth, nth, 1, start, 10, 8000, 1, accepted)
        for nth, (start, accepted) in enumerate(rooms, 1)
    ]
    trace = read_trace(write(*pushes))
    assert kinds(trace) == ([] if sound else ["inconsistent"])


def test_trace_with_nothing_but_header_and_trailer_is_complete(write: Write) -> None:
    trace = read_trace(write())

    assert trace.complete
    assert len(trace.captured) == len(trace.sent) == 0
    assert trace.pushed.range_offset.tolist() == [0]


def test_blank_lines_windows_line_ends_and_a_byte_order_mark_do_no_harm(write: Write) -> None:
    path = write(*EVENTS)
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n\r\n".join(lines))

    trace = read_trace(path)

    assert trace.complete
    assert len(trace.captured) == 2
    assert trace.captured.line.tolist() == [3, 7]


def test_unknown_keys_are_skipped(write: Write) -> None:
    trace = read_trace(write('{"later":[{}],"event":"bookmark","at_ns":1,"name":"a"}\n'))

    assert trace.complete
    assert trace.events == (Bookmarked(1, "a"),)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_parser_takes_a_growing_trace_in_pieces_of_any_length(write: Write, size: int) -> None:
    path = write(*EVENTS)
    data = path.read_bytes()
    parser = TraceParser(path)
    seen = 0
    for start in range(0, len(data), size):
        parser.feed(data[start : start + size])
        if parser.header is not None:
            known = parser.trace()
            assert len(known.captured) >= seen
            seen = len(known.captured)
    parser.close()

    assert parser.trailer is not None
    assert list(parser.trace().all_events()) == list(read_trace(path).all_events())
    assert parser.trace().complete


def test_parser_without_a_whole_line_has_no_trace_yet() -> None:
    parser = TraceParser("call.jsonl")
    parser.feed(b'{"event":"hea')

    with pytest.raises(TraceError, match="less than its first line"):
        parser.trace()


def test_compressed_trace_reads_like_the_plain_one(write: Write) -> None:
    path = write(*EVENTS)
    packed = compress_trace(path)

    assert packed == path.with_name("call.jsonl.zst")
    assert list(read_trace(packed).all_events()) == list(read_trace(path).all_events())
    assert read_trace(packed).complete


def test_several_compressed_frames_are_one_trace(write: Write) -> None:
    path = write(*EVENTS)
    data = path.read_bytes()
    packer = zstandard.ZstdCompressor()
    path.write_bytes(packer.compress(data[:300]) + packer.compress(data[300:]))

    assert read_trace(path).complete


def test_compression_replaces_nothing_and_leaves_nothing_half_done(write: Write) -> None:
    path = write(*EVENTS)
    path.with_name("call.jsonl.zst").write_text("mine")

    with pytest.raises(TraceError, match="found one"):
        compress_trace(path)
    with pytest.raises(TraceError, match="No such file"):
        compress_trace(path.with_name("other.jsonl"))
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["call.jsonl", "call.jsonl.zst"]
    assert path.with_name("call.jsonl.zst").read_text() == "mine"


# Where nothing can be said


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "the file is empty"),
        (b"\n", r"found ''"),
        (b"   ", "the file is empty"),
        (b"hello\nworld\n", "'hello'"),
        (b"\x00\xff\x7fELF" * 99, "ELF"),
        (b"[]\n", r"'\[\]'"),
        (b"{}\n", r"'\{\}'"),
        (b'{"event":"header","schema":1', "event"),
        (b'{"event":"header","schema":7,"new":1}\n', "found schema 7; a newer"),
        (b'{"event":"header","schema":1' + b"0" * 30 + b"}\n", "found schema beyond reason"),
        (b'{"event":"header","schema":true}\n', "bool"),
        (b'{"event":"header","schema":0,"started_monotonic_ns":1,"started_unix_s":1}\n', ">= 1"),
        (b'{"event":"header","schema":1}\n', "started_monotonic_ns"),
        (b'{"event":"captured","at_ns":1}\n', "found the event 'captured'"),
        (b'{"event":"trailer","at_ns":1,"events":0}\n', "found the event 'trailer'"),
        (b"[" * 100_000 + b"\n", r"'\[\["),
        (b"x" * (2 * MAX_LINE_BYTES), "found a longer one"),
        (b"\x28\xb5\x2f\xfd", "compressed data is damaged"),
        (zstandard.compress(encode(HEADER).encode() * 3)[:60], "compressed data is damaged"),
        (b"\x28\xb5\x2f\xfd garbage of all kinds", "compressed data is damaged"),
        (zstandard.compress(b""), "the file is empty"),
        (zstandard.compress(b"no trace\n"), "'no trace'"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_file_without_a_readable_header_is_one_clear_line(
    tmp_path: Path, content: bytes, found: str
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)

    assert re.search(found, error_of(path))


def test_missing_file_folder_and_impossible_name_are_one_clear_line(tmp_path: Path) -> None:
    assert "No such file" in error_of(tmp_path / "none.jsonl")
    assert "directory" in error_of(tmp_path)
    with pytest.raises(TraceError, match="expected a readable trace file"):
        read_trace("call\0.jsonl")


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file_is_one_clear_line(write: Write) -> None:
    path = write(*EVENTS)
    path.chmod(0)

    assert "Permission denied" in error_of(path)


# Where something is wrong further down


def test_trace_without_a_trailer_is_cut_at_its_last_event(write: Write) -> None:
    trace = read_trace(write(*EVENTS, trailer=None))

    assert not trace.complete
    assert trace.trailer is None
    (problem,) = trace.problems
    assert problem.kind == "cut"
    assert problem.line == trace.lines == len(EVENTS) + 1
    assert "0.060 s" in problem.text


def test_every_cut_is_found_wherever_it_falls(write: Write) -> None:
    path = write(*EVENTS)
    data = path.read_bytes()
    first = data.index(b"\n") + 1
    whole = len(data) - 1  # without the last newline nothing is missing yet
    for length in range(first, len(data)):
        path.write_bytes(data[:length])
        trace = read_trace(path)
        assert trace.complete == (length >= whole)
        assert kinds(trace) == ([] if length >= whole else ["cut"])


def test_cut_in_the_middle_of_a_line_names_the_line(write: Write) -> None:
    path = write(*EVENTS)
    path.write_bytes(path.read_bytes()[:-60])

    (problem,) = read_trace(path).problems
    assert problem.kind == "cut"
    assert "middle of a line" in problem.text
    assert problem.line == read_trace(path).lines


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.9, 0.99])
def test_cut_compressed_trace_is_cut_or_says_nothing(write: Write, keep: float) -> None:
    path = write(*[Bookmarked(at, os.urandom(40).hex()) for at in range(20_000)])
    packed = compress_trace(path)
    data = packed.read_bytes()
    packed.write_bytes(data[: int(len(data) * keep)])

    trace = read_trace(packed)
    assert kinds(trace) == ["cut"]
    assert 0 < len(trace.events) < 20_000


def test_damaged_compressed_trace_keeps_what_came_before(write: Write) -> None:
    path = write(*[Bookmarked(at, os.urandom(40).hex()) for at in range(20_000)])
    packed = compress_trace(path)
    data = bytearray(packed.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 2000] = bytes(2000)
    packed.write_bytes(data)

    trace = read_trace(packed)
    assert not trace.complete
    assert 0 < len(trace.events) < 20_000
    assert "cut" in kinds(trace)


@pytest.mark.parametrize("tail", [b"garbage", os.urandom(5000), b"\x28\xb5\x2f\xfd"])
def test_garbage_after_a_compressed_trace_keeps_it_and_is_a_problem(
    write: Write, tail: bytes
) -> None:
    packed = compress_trace(write(*EVENTS))
    packed.write_bytes(packed.read_bytes() + tail)

    trace = read_trace(packed)
    assert kinds(trace) == ["cut"]
    assert "the compressed data is damaged" in trace.problems[0].text
    assert trace.trailer is not None
    assert len(trace.captured) == 2
    assert analyze(trace).balanced is not True


def test_compressed_trace_that_lacks_its_last_bytes_is_a_problem(write: Write) -> None:
    packed = compress_trace(write(*EVENTS))
    packed.write_bytes(packed.read_bytes()[:-2])

    assert kinds(read_trace(packed)) == ["cut"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_pipe_nobody_writes_into_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "call.jsonl"
    os.mkfifo(pipe)

    assert "found: no regular file" in error_of(pipe)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"garbage", "garbled"),
        (b"\xff\xfe\x00\x01", "garbled"),
        (b'{"event":"bookmark","at_ns":1,"name":"\xff"}', "garbled"),
        (b'{"event":"bookmark","at_ns":1', "garbled"),
        (b'{"event":"bookmark","at_ns":NaN,"name":"a"}', "garbled"),
        (b'{"at_ns":1}', "garbled"),
        (b'{"event":null}', "garbled"),
        (b"17", "garbled"),
        (b'"text"', "garbled"),
        (b"[" * 50_000, "garbled"),
        (b'{"event":"bookmark","at_ns":1,"name":"a","x":' + b"[" * 50_000, "garbled"),
        (b'{"event":"bookmark","at_ns":1}', "bad-value"),
        (b'{"event":"bookmark","at_ns":true,"name":"a"}', "bad-value"),
        (b'{"event":"bookmark","at_ns":1.5,"name":"a"}', "bad-value"),
        (b'{"event":"bookmark","at_ns":"1","name":"a"}', "bad-value"),
        (b'{"event":"bookmark","at_ns":1' + b"0" * 30 + b',"name":"a"}', "bad-value"),
        (b'{"event":"bookmark","at_ns":1' + b"0" * 5000 + b',"name":"a"}', "bad-value"),
        (b'{"event":"mark","at_ns":1,"mark":"stop"}', "bad-value"),
        (b'{"event":"playback","at_ns":1,"report":"started","position_s":1e999}', "bad-value"),
        (b'{"event":"from-the-future","at_ns":1}', "unknown-event"),
        (
            b'{"event":"header","schema":1,"started_monotonic_ns":1,"started_unix_s":1}',
            "duplicate-header",
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_line_that_cannot_be_used_is_a_problem_and_the_rest_is_read(
    write: Write, line: bytes, kind: str
) -> None:
    trace = read_trace(write(*EVENTS[:4], line + b"\n", *EVENTS[4:]))

    (problem,) = trace.problems
    assert problem.kind == kind
    assert problem.line == 6
    assert "\n" not in problem.text
    assert len(problem.text) < 300
    assert not trace.complete
    assert len(trace.captured) == len(trace.pushed) == 2
    assert len(trace.events) == 2


ABSURD: list[dict[str, object]] = [
    {"samples": -1},
    {"samples": 10**9 + 1},
    {"samples": True},
    {"samples": 480.5},
    {"samples": None},
    {"samples": 2**70},
    {"rate_hz": 0},
    {"rate_hz": -24000},
    {"rate_hz": 10**30},
    {"channels": 0},
    {"channels": 10**6},
    {"start_sample": -1},
    {"start_sample": 2**63},
    {"at_ns": 10**18},
    {"at_ns": -(10**18)},
    {"ended_ns": 2**63},
    {"frame": 0},
    {"frame": 2**62},
    {"speech": 7},
    {"end": "vanished"},
    {"data_bytes": -1},
]


@pytest.mark.parametrize("absurd", ABSURD, ids=str)
def test_absurd_numbers_are_refused(write: Write, absurd: dict[str, object]) -> None:
    values = json.loads(encode(FrameCaptured(1, 1, 0, 480, 24000, 1))) | absurd

    trace = read_trace(write(json.dumps(values) + "\n"))

    (problem,) = trace.problems
    assert problem.kind == "bad-value"
    assert problem.text.startswith("captured: ")
    assert next(iter(absurd)) in problem.text
    assert not trace.complete
    assert len(trace.captured) == 0


@pytest.mark.parametrize("ranges", [[[0]], [[0, 1, 2]], [[0, -1]], [[-1, 1]], [[0, 1.5]], {}, "x"])
def test_absurd_ranges_are_refused(write: Write, ranges: object) -> None:
    values = json.loads(encode(FramePushed(1, 1, 1, 0, 480, 24000, 1))) | {"captured": ranges}

    assert kinds(read_trace(write(json.dumps(values) + "\n"))) == ["bad-value"]


def test_repetitions_are_one_problem_with_a_count(write: Write) -> None:
    junk = [b"junk\n"] * 50 + [f'{{"event":"new-{n}"}}\n'.encode() for n in range(500)]

    trace = read_trace(write(*junk))

    assert [(problem.kind, problem.count) for problem in trace.problems] == [
        ("garbled", 50),
        ("unknown-event", 500),
    ]


def test_line_of_100_megabytes_is_skipped_without_holding_it(write: Write) -> None:
    path = write(*EVENTS[:4], b'{"event":"bookmark","name":"' + b"x" * 100_000_000 + b'"}\n')
    tracemalloc.start()
    trace = read_trace(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert kinds(trace) == ["garbled"]
    assert trace.trailer is not None
    assert len(trace.captured) == 2
    assert peak < 20_000_000


def test_endless_line_at_the_end_is_too_long_and_a_cut(write: Write) -> None:
    trace = read_trace(write(*EVENTS, b"x" * (3 * MAX_LINE_BYTES), trailer=None))

    assert kinds(trace) == ["garbled", "cut"]
    assert "found a longer one" in trace.problems[0].text
    assert trace.problems[0].line == trace.lines


def test_lines_after_the_trailer_are_left_out(write: Write) -> None:
    path = write(*EVENTS)
    with path.open("ab") as file:
        file.write(encode(Bookmarked(1, "late")).encode() * 3)

    trace = read_trace(path)
    (problem,) = trace.problems
    assert (problem.kind, problem.count, problem.line) == ("after-trailer", 3, len(EVENTS) + 3)
    assert not trace.complete
    assert len(trace.events) == 2


@pytest.mark.parametrize("size", [1, 64, 10**6])
def test_two_traces_in_one_file_are_the_first_one_and_a_problem(write: Write, size: int) -> None:
    path = write(*EVENTS)
    data = path.read_bytes() * 2
    parser = TraceParser(path)
    for start in range(0, len(data), size):
        parser.feed(data[start : start + size])
    parser.close()

    trace = parser.trace()
    assert kinds(trace) == ["after-trailer"]
    assert trace.problems[0].count == len(EVENTS) + 2
    assert len(trace.captured) == 2


def test_trailer_that_counts_other_lines_is_a_problem(write: Write) -> None:
    trace = read_trace(write(*EVENTS, trailer=Trailer(1, 99)))

    (problem,) = trace.problems
    assert problem.kind == "count"
    assert "99" in problem.text
    assert str(len(EVENTS) + 1) in problem.text
    assert not trace.complete


def test_time_running_backwards_is_a_problem_and_ordinary_disorder_is_none(write: Write) -> None:
    def backwards(seconds: float) -> Trace:
        return read_trace(
            write(Bookmarked(5 * 10**9, "a"), Bookmarked(int((5 - seconds) * 10**9), "b"))
        )

    assert backwards(0.9).complete
    trace = backwards(1.5)
    (problem,) = trace.problems
    assert (problem.kind, problem.line) == ("time", 3)
    assert "1.500 s" in problem.text
    assert not trace.complete


def test_what_is_written_when_it_is_over_is_not_out_of_order(write: Write) -> None:
    assert read_trace(
        write(
            Bookmarked(9 * 10**9, "a"),
            LoopStalled(2 * 10**9, 9 * 10**9),
            RunSent(10**9, 10**9 + 1, 1, None, 1),
            SilenceInserted(10**9, 10**9 + 1, 1, 10),
        )
    ).complete


@pytest.mark.parametrize(
    "event",
    [
        FrameCaptured(10, 1, 0, 1, 8000, 1, None, "returned", 9),
        FramePushed(10, 1, 1, 0, 1, 8000, 1, ended_ns=9),
        RunSent(10, 9, 1, None, 1),
        SilenceInserted(10, 9, 1, 1),
    ],
    ids=lambda event: event.NAME,
)
def test_what_ended_before_it_began_is_a_problem(write: Write, event: Event) -> None:
    assert kinds(read_trace(write(event))) == ["time"]


def captured(frame: int, start: int, samples: int = 10) -> FrameCaptured:
    return FrameCaptured(frame, frame, start, samples, 8000, 1)


def pushed(push: int, start: int, **more: Any) -> FramePushed:
    return FramePushed(push, push, 1, start, 10, 8000, 1, **more)


FED = [pushed(1, 0), pushed(2, 10)]


def left(start: int, samples: int, source: int = 1) -> RunSent:
    return RunSent(20, 25, source, start, samples)


@pytest.mark.parametrize(
    ("events", "kind", "text"),
    [
        ([captured(1, 0), captured(3, 20)], "missing", "expected frame 2, found frame 3"),
        ([captured(2, 0)], "missing", "expected frame 1, found frame 2"),
        ([pushed(1, 0), pushed(4, 30)], "missing", "expected push 2, found push 4"),
        ([captured(1, 0), captured(1, 0)], "inconsistent", "frame 1 comes twice"),
        ([pushed(1, 0), pushed(1, 0)], "inconsistent", "push 1 comes twice"),
        ([captured(1, 0), captured(2, 9)], "inconsistent", "does not start where"),
        ([captured(1, 0), captured(2, 11)], "inconsistent", "does not start where"),
        ([pushed(1, 0), pushed(2, 0)], "inconsistent", "does not start where"),
        ([captured(1, 5)], "inconsistent", "does not start where"),
        ([pushed(1, 5)], "inconsistent", "does not start where"),
        ([pushed(1, 0, captured=[(None, 9)])], "inconsistent", "do not add up"),
        ([pushed(1, 0, captured=[])], "inconsistent", "do not add up"),
        ([CaptureEnded(1, 5, "returned")], "inconsistent", "no such frame"),
        ([PushEnded(1, 5, "returned")], "inconsistent", "no such push"),
        ([PushMatched(1, 5, [(0, 1)])], "inconsistent", "no such push"),
        ([captured(1, 0), pushed(1, 0, captured=[(1, 10)])], "inconsistent", "that no frame has"),
        ([captured(1, 0), pushed(1, 0)], "missing", "what a push was made of"),
        ([*FED, left(0, 10), left(9, 10)], "inconsistent", "sent twice"),
        ([*FED, left(10, 10), left(0, 10)], "inconsistent", "in another order"),
        ([*FED, left(15, 10)], "inconsistent", "never took them"),
        ([*FED, left(0, 10, 2)], "inconsistent", "never took them"),
        ([left(0, 10)], "inconsistent", "never took them"),
    ],
    ids=str,
)
def test_lines_that_contradict_each_other_are_a_problem(
    write: Write, events: list[Event], kind: str, text: str
) -> None:
    trace = read_trace(write(*events))

    (problem,) = trace.problems
    assert problem.kind == kind
    assert text in problem.text
    assert not trace.complete


def test_first_of_two_frames_with_one_number_counts(write: Write) -> None:
    trace = read_trace(write(captured(1, 0), captured(1, 0, 99)))

    assert trace.captured.samples.tolist() == [10]
