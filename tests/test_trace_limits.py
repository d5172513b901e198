"""What is beyond any call is refused at once, in one line; what is as long as ten hours is read."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from probe.bench.analysis import write_call
from probe.cli.main import main
from probe.errors import TraceError
from probe.trace.events import Header
from probe.trace.limits import LIMITS, Limits, beyond
from probe.trace.parser import TraceParser
from probe.trace.reader import read_trace
from probe.trace.writer import encode

MB = 1 << 20
HEADER = encode(Header(1, 0, 1.5)).encode()
RARE = b'{"event":"source_closed","at_ns":0,"source":1}\n'
FRAME = (
    b'{"event":"captured","at_ns":0,"frame":1,"start_sample":0,"samples":0,"rate_hz":1,'
    b'"channels":1}\n'
)


def packed(pieces: Iterable[bytes]) -> bytes:
    packer = zstandard.ZstdCompressor(level=1).compressobj()
    return b"".join([*(packer.compress(piece) for piece in pieces), packer.flush()])


def bomb(line: bytes, megabytes: int) -> bytes:
    return packed([HEADER, *[line * (MB // len(line))] * megabytes])


@pytest.mark.parametrize("line", [RARE, FRAME, b"\n", b" "], ids=repr)
def test_a_small_file_that_unpacks_to_much_is_refused_at_once(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "call.jsonl.zst"
    path.write_bytes(bomb(line, 600))
    assert path.stat().st_size < MB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()

    with pytest.raises(TraceError) as caught:
        read_trace(path)

    assert time.process_time() - began < 3
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000
    message = str(caught.value)
    assert message.startswith(f"{path}: expected at most 1,000 times as many bytes unpacked as ")
    assert "--no-limits" in message
    assert "\n" not in message


SMALL = Limits(
    unpacked_bytes=100_000,
    ratio=20,
    ratio_from_bytes=10_000,
    lines=500,
    rare_lines=50,
    nested_bytes=2000,
    sources=3,
)

CALM = HEADER + FRAME * 100
"""Within all of them."""


def sources(count: int) -> bytes:
    return b"".join(
        b'{"event":"inserted","at_ns":%d,"until_ns":%d,"source":%d,"samples":1}\n' % (n, n, n)
        for n in range(1, count + 1)
    )


BEYOND: dict[str, tuple[bytes, bytes, str]] = {
    "bytes": (FRAME, FRAME * 1100, "100,000 bytes, unpacked"),
    "lines": (b"\n" * 300, b"\n" * 400, "500 lines"),
    "rare lines": (RARE * 50, RARE * 51, "50 lines beside those of the audio"),
    "junk": (b"x\n" * 50, b"x\n" * 51, "50 lines beside those of the audio"),
    "unknown events": (
        b'{"event":"hum"}\n' * 50,
        b'{"event":"hum"}\n' * 51,
        "50 lines beside those of the audio",
    ),
    "lists": (
        b'{"event":"context_seen","at_ns":0,"side":"local","removed":[""]}\n' * 5,
        b'{"event":"context_seen","at_ns":0,"side":"local","removed":["",'
        + b'"",' * 900
        + b'""]}\n',
        "2,000 bytes of lists and objects",
    ),
    "objects": (
        b'{"event":"options","at_ns":0,"options":{"a":[]}}\n' * 5,
        b'{"event":"options","at_ns":0,"options":{"a":[' + b"[]," * 900 + b"[]]}}\n",
        "2,000 bytes of lists and objects",
    ),
    "sources": (sources(3), sources(4), "3 audio sources"),
}


@pytest.mark.parametrize("what", BEYOND)
def test_each_limit_is_held_and_can_be_lifted(tmp_path: Path, what: str) -> None:
    within, beyond, said = BEYOND[what]
    path = tmp_path / "call.jsonl"
    path.write_bytes(CALM + within)
    read_trace(path, SMALL)

    path.write_bytes(CALM + beyond)
    with pytest.raises(TraceError) as caught:
        read_trace(path, SMALL)
    assert f"expected at most {said}, found more" in str(caught.value)
    assert "\n" not in str(caught.value)

    assert read_trace(path, None).lines >= 102
    assert read_trace(path).lines >= 102


def test_the_ratio_counts_from_a_size_on(tmp_path: Path) -> None:
    path = tmp_path / "call.jsonl"
    path.write_bytes(packed([HEADER, FRAME * 90]))
    assert len(read_trace(path, SMALL).captured) == 1

    path.write_bytes(packed([HEADER, FRAME * 400]))
    with pytest.raises(TraceError, match="20 times as many bytes unpacked as packed"):
        read_trace(path, SMALL)
    read_trace(path, replace(SMALL, ratio=2000))
    read_trace(path, None)


@pytest.mark.parametrize("size", [100, 10_000])
def test_a_file_that_grows_is_bounded_as_well(size: int) -> None:
    parser = TraceParser("call.jsonl", SMALL)
    data = CALM + RARE * 51

    def feed() -> None:
        for start in range(0, len(data), size):
            parser.feed(data[start : start + size])

    with pytest.raises(TraceError, match="50 lines beside those of the audio"):
        feed()


def test_blank_lines_cost_little_more_than_none(tmp_path: Path) -> None:
    """An editor doubled every line end: they are looked at together all the same."""

    def cost(data: bytes) -> float:
        path = tmp_path / "call.jsonl"
        path.write_bytes(data)
        spent = []
        for _ in range(3):
            began = time.process_time()
            read_trace(path)
            spent.append(time.process_time() - began)
        return min(spent)

    lines = b"".join(
        b'{"event":"captured","at_ns":%d,"frame":%d,"start_sample":%d,"samples":1,"rate_hz":8000,'
        b'"channels":1}\n' % (n, n, n - 1)
        for n in range(1, 60_000)
    )
    assert cost(HEADER + lines.replace(b"\n", b"\r\n\r\n")) < 3 * cost(HEADER + lines)


def test_ten_hours_of_a_call_are_within(tmp_path: Path) -> None:
    """By what seven minutes take up, with room for a call that is twice as busy."""
    path = tmp_path / "call.jsonl"
    write_call(path, 7)
    data = path.read_bytes()
    ten_hours = 600 / 7
    assert 2 * ten_hours * len(data) < LIMITS.unpacked_bytes
    assert 2 * ten_hours * data.count(b"\n") < LIMITS.lines
    assert 2 * ten_hours * len(read_trace(path).events) < LIMITS.rare_lines
    assert 10 * len(data) / len(zstandard.compress(data, 9)) < LIMITS.ratio


@pytest.mark.parametrize("command", ["report", "compare"])
def test_every_command_that_reads_traces_refuses_and_can_be_made_to_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_call(tmp_path / name / "call.jsonl", 0.2)
    long = tmp_path / "two" / "long.jsonl.zst"
    long.write_bytes(bomb(b" " * 1000, 20))
    folders = [str(tmp_path / "one"), str(tmp_path / "two")]

    assert main([command, *folders]) == 1
    said = capsys.readouterr()
    refusal = beyond(str(long), 1000, "times as many bytes unpacked as packed")
    assert said.err == f"sinkprobe: {refusal}\n"
    assert said.out

    main([command, "--no-limits", *folders])
    assert "--no-limits" not in capsys.readouterr().err
