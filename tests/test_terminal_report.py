"""The report for a terminal: partial segments, bookmarks, order, and what stands beside figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from probe.cli.main import main
from probe.trace.events import (
    Bookmarked,
    Event,
    FrameCaptured,
    FramePushed,
    InterruptCalled,
    PlaybackReported,
    RunSent,
    SinkMarked,
    SpeechCommitted,
)
from reports import analyze
from reports.results import Range
from reports.show import terminal
from reports.show.page import shortened
from tests.html_calls import leaking
from tests.report_traces import MS, Simulation, taps, write


def told(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert main(["report", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def rows(text: str, title: str) -> list[str]:
    """What stands under a title, up to the next empty line."""
    return text.split(f"\n{title}", 1)[1].split("\n\n", 1)[0].splitlines()[1:]


def came_late(speech: str = "s1") -> list[Event]:
    """The probe came in mid-speech: 960 samples went out that it never saw captured, 120 more."""
    return [
        *taps(mid_speech=True),
        RunSent(5 * MS, 45 * MS, 1, None, 960),
        FrameCaptured(60 * MS, 1, 0, 480, 24_000, 1, speech, "returned", 60 * MS + 1000),
        FramePushed(
            61 * MS, 1, 1, 0, 600, 24_000, 1,
            captured=[(None, 120), (0, 480)], end="returned", ended_ns=61 * MS + 1000,
        ),
        RunSent(70 * MS, 90 * MS, 1, 0, 480),
    ]  # fmt: skip


def interrupted(*bookmarks: tuple[int, str]) -> list[Event]:
    """A pause at 200 ms, which is the verdict, and a commit at 250 ms; nothing is sent between."""
    call = Simulation()
    for _ in range(30):
        call.capture(480)
    call.tick(20)
    call.pause()
    call.tick(5)
    call.happens(InterruptCalled, "s1", by="program")
    call.happens(SpeechCommitted, "s1")
    call.clear()
    call.tick(2)
    call.resume()
    marks = [Bookmarked(at_ms * MS, name) for at_ms, name in bookmarks]
    return sorted([*call.end(), *marks], key=lambda e: e.at_ns)  # type: ignore[union-attr]


@pytest.mark.parametrize("arguments", [(), ("--segment", "1")])
def test_a_partial_segment_is_told_with_what_was_inside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    out = told(capsys, write(tmp_path / "call.jsonl", came_late()), *arguments)
    assert (
        "segment 1 was under way when the probe came: 45.0 ms (1080 samples) inside already are "
        "inherited and in no balance"
    ) in " ".join(out.split())
    row = next(line for line in out.splitlines() if line.startswith("  inherited"))
    assert row.split()[1:3] == ["120", "5.0"]
    assert "times are ms since the trace began" in out


def test_a_whole_segment_is_not_called_partial(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = told(capsys, write(tmp_path / "call.jsonl", interrupted()))
    assert "under way when" not in out
    assert "\n  inherited" not in out


def test_bookmarks_stand_in_the_order_of_their_barge_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = interrupted((5, "early"), (225, "now\x1b[31m\n" + "x" * 100), (900, "late"))
    out = told(capsys, write(tmp_path / "call.jsonl", events))
    order = rows(out, "In order, ms from the verdict")
    names = [line.split("bookmark: ")[1] for line in order if "bookmark: " in line]
    assert names == ["early", "now?[31m " + "x" * 38 + "…", "late"]
    times = [float(line.split()[0]) for line in order]
    assert times == sorted(times)
    assert times[0] == pytest.approx(-195, abs=0.2)
    assert "Bookmarks, ms" not in out
    assert "\x1b" not in out


def test_bookmarks_without_a_barge_in_are_a_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = [*came_late(), *(Bookmarked((100 + n) * MS, f"mark {n}") for n in range(14))]
    out = told(capsys, write(tmp_path / "call.jsonl", events))
    lines = rows(out, "Bookmarks, ms since the trace began")
    assert lines[0].split() == ["100.0", "mark", "0"]
    assert len(lines) == 13
    assert "and 2 more" in lines[-1]


def test_a_name_is_cut_and_holds_nothing_a_terminal_obeys() -> None:
    assert shortened("a\tb\x07\u202ec", 10) == "a b??c"
    assert shortened("abcdef", 4) == "abc…"


def test_the_marks_of_a_segment_are_in_order_of_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events: list[Event] = [
        *came_late(),
        SinkMarked(80 * MS, "flush", "s1", ended_ns=80 * MS + 1000),
        PlaybackReported(95 * MS, "finished", "s1", position_s=0.02, interrupted=False),
        SinkMarked(99 * MS, "resume", "s1", ended_ns=99 * MS + 1000),
    ]
    out = told(capsys, write(tmp_path / "call.jsonl", events), "--segment", "1")
    marks = rows(out, "Marks of the sink")
    times = [float(line.split()[0]) for line in marks]
    assert times == sorted(times)
    text = " ".join(marks)
    assert text.index("flush") < text.index("reported as finished") < text.index("resume")


def test_details_of_one_of_several_traces_name_the_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.jsonl", interrupted())
    out = told(capsys, tmp_path)
    assert "Details of one: sinkprobe report TRACE --segment N, N as in the column seg." in out


def test_a_stop_time_of_zero_says_that_it_was_silent_already(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = told(capsys, write(tmp_path / "call.jsonl", interrupted()))
    (line,) = [line for line in out.splitlines() if line.startswith("  stop time")]
    assert line.split() == ["stop", "time", "0.0", "ms", "already", "silent"]


def test_ranges_without_a_hole_are_one(tmp_path: Path) -> None:
    analysis = analyze(write(tmp_path / "call.jsonl", leaking()))
    ranges = (
        Range("pushed", 14400, 71760, None, None),
        Range("pushed", 71760, 71880, None, None),
        Range("sent", 71880, 71900, None, None),
        Range("sent", 71901, 71910, None, None),
    )
    found = replace(
        analysis.findings[0], evidence=replace(analysis.findings[0].evidence, ranges=ranges)
    )
    text = " ".join(terminal.render([replace(analysis, findings=(found,))]).split())
    assert "samples: pushed 14400 to 71880, sent 71880 to 71900, sent 71901 to 71910" in text
