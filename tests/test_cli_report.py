"""`sinkprobe report`: what it prints, where, and with which exit code."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probe.cli.main import main
from probe.trace.events import (
    ControlStarted,
    Event,
    Faulted,
    FrameCaptured,
    InterruptCalled,
    OptionsChanged,
    OverlapJudged,
    PlaybackReported,
    SpeechCommitted,
    SpeechDone,
    TranscriptReceived,
)
from reports import analyze
from reports.show import terminal
from tests.report_traces import MS, Simulation, header, write, write_hour

ROOT = Path(__file__).resolve().parents[1]


def barge_in_call(
    *, queue_plays: int = 1, resumes: bool = False, name: str = "s1", control: bool = True
) -> list[Event]:
    call = Simulation()
    call.events.append(OptionsChanged(0, {"false_interruption_timeout_s": 0.6}))
    for _ in range(60):
        call.capture(490, name)
    call.tick(20)
    call.user(True)
    call.happens(OverlapJudged, True, speech=name)
    call.tick(queue_plays)
    call.pause()
    call.tick(4)
    if resumes:
        call.user(False)
        call.resume()
        call.tick(120)
        call.happens(SpeechDone, name)
    else:
        call.happens(TranscriptReceived, True, 12, 3)
        call.happens(InterruptCalled, name, by="transcript")
        call.happens(SpeechCommitted, name)
        call.clear(1)
        call.tick(2)
        call.user(False)
        call.resume()
        call.happens(PlaybackReported, "finished", name, position_s=0.2, interrupted=True)
    if control:
        call.happens(ControlStarted, "control")
        for _ in range(20):
            call.capture(481, "control")
        call.flush()
        call.tick(60)
        call.happens(SpeechDone, "control")
    return call.end()


def run_header(**run: Any) -> Any:
    told = {
        "scenario": "barge-in",
        "pacing": "burst",
        "frame_ms": 20.0,
        "rate_hz": 24_000,
        "reply_ms": 1225,
        "at": 200,
    }
    return header(run={**told, **run}, labels={"job": "j-1"})


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write(tmp_path / "call.jsonl", barge_in_call(), head=run_header())


def report(*arguments: str | Path) -> int:
    return main(["report", *map(str, arguments)])


# --- Terminal ------------------------------------------------------------------------------------


def test_the_leak_comes_first_and_the_balance_follows(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(trace) == 0
    out = capsys.readouterr().out
    assert "leaked after the verdict: 10.0 ms (240 samples) sent, 50.0 ms pushed" in out
    assert out.index("leaked after") < out.index("In order") < out.index("Where every sample went")
    assert "Where every sample went (balances)" in out
    assert "no longer than the resolution of 10 ms" in out
    assert "whole, up to a tail" in " ".join(out.split())
    for word in ("captured", "pushed", "sent", "dropped", "held", "cleared", "queued", "tail"):
        assert word in out
    assert "\x1b" not in out


def test_zero_is_printed_and_what_is_missing_is_a_dash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = [
        event
        for event in barge_in_call()
        if event.NAME not in ("sent", "inserted")
        and not (event.NAME == "tapped" and event.boundary == "sent")  # type: ignore[union-attr]
    ]
    report(write(tmp_path / "call.jsonl", events))
    out = capsys.readouterr().out
    assert "leaked after the verdict: – sent, 50.0 ms pushed" in out
    assert "not counted: sent" in out
    row = next(line for line in out.splitlines() if line.strip().startswith("cleared"))
    assert "–" in row


def test_a_verdict_that_was_let_lapse_is_told_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report(write(tmp_path / "call.jsonl", barge_in_call(resumes=True)))
    out = " ".join(capsys.readouterr().out.split())
    assert "overlap verdict, outcome resumed" in out
    assert "The model had decided, and no final transcript followed" in out
    assert "went out after the verdict" in out
    assert "no accident of timing" in out


def test_a_trace_that_does_not_balance_is_no_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = barge_in_call()
    runs = [event for event in events if event.NAME == "sent"]
    write(tmp_path / "call.jsonl", [event for event in events if event is not runs[-1]])
    assert report(tmp_path / "call.jsonl") == 0
    out = capsys.readouterr().out
    assert out.startswith("!! DOES NOT BALANCE")
    assert "no result: the balance" in out


def test_an_incomplete_trace_says_so_before_anything_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = [*barge_in_call(), Faulted(5000 * MS, "events_lost", 7, "buffer full")]
    report(write(tmp_path / "call.jsonl", events, trailer=False))
    out = capsys.readouterr().out
    assert out.startswith("!! INCOMPLETE TRACE")
    assert "killed" in out
    assert "events_lost, 7x" in out
    assert "balance not known" in out


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("colour", [False, True])
def test_no_line_is_wider_than_the_terminal(tmp_path: Path, width: int, colour: bool) -> None:
    name = "speech_" + "x" * 90
    head = run_header(scenario="a-scenario-with-quite-a-long-name-of-its-own" * 2)
    events = [
        *barge_in_call(name=name),
        Faulted(5000 * MS, "write_failed", 1, "No space left on device " * 8),
    ]
    paths = [
        write(tmp_path / f"{'long-name-' * 9}{n}.jsonl", every, head=head)
        for n, every in enumerate((events, barge_in_call(resumes=True), barge_in_call()))
    ]
    analyses = [analyze(path) for path in paths]
    for shown in (analyses[:1], analyses):
        for segment in (None, 1, 2):
            text = terminal.render(shown, segment=segment, width=width, colour=colour)
            for line in text.splitlines():
                assert len(_plain(line)) <= width, line


def _plain(line: str) -> str:
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", line)


def test_several_traces_are_one_line_each_worst_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for n, plays in enumerate((1, 5, 3)):
        write(tmp_path / f"call-{n}.jsonl", barge_in_call(queue_plays=plays))
    assert report(tmp_path) == 0
    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines() if "call-" in line]
    assert [(line[0], line[-1]) for line in lines] == [
        ("50.0", "call-1"),
        ("30.0", "call-2"),
        ("10.0", "call-0"),
    ]
    assert "Summary of 3 barge-ins in 3 traces" in out
    assert "3 committed" in out
    figures = next(line for line in out.splitlines() if "leaked, sent" in line).split()
    assert figures[3:6] == ["30.0", "50.0", "50.0"]


def test_details_of_one_segment(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(trace, "--segment", "2") == 0
    out = capsys.readouterr().out
    assert "No barge-in on segment 2" in out
    assert "Marks of the sink" in out
    assert "segment 1" not in out


def test_a_segment_there_is_none_of_is_wrong_usage(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(trace, "--segment", "9") == 2
    assert "expected 1 to 2" in capsys.readouterr().err


# --- JSON ----------------------------------------------------------------------------------------

AMOUNT = {"frames", "samples", "ms"}
TRACE = {"complete", "runtime", "boundaries", "resolution_ms", "labels", "options"}
SEGMENT = {
    "index",
    "speech_id",
    "partial",
    "captured",
    "pushed",
    "sent",
    "cleared_samples",
    "dropped_samples",
    "held_samples",
    "queued_samples",
    "inherited_samples",
    "inserted_samples",
    "tail_samples",
    "ambiguous_samples",
    "unaccounted_samples",
    "sent_in_later_segments_samples",
    "started_ms",
    "finished_ms",
    "interrupted",
    "claimed_position_ms",
    "sent_position_ms",
    "last_sent_position_ms",
    "order",
    "gaps",
}
BARGE_IN = {
    "segment",
    "speech_id",
    "onset_ms",
    "pause_ms",
    "verdict_ms",
    "verdict_kind",
    "commit_ms",
    "clear_ms",
    "resume_ms",
    "last_sent_ms",
    "stop_ms",
    "outcome",
    "leaked",
    "after_onset",
    "after_pause",
    "causes",
}


def test_the_json_report_has_every_field_that_scripts_rely_on(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(trace, "--format", "json") == 0
    out, err = capsys.readouterr()
    assert err == ""
    document = json.loads(out)
    assert document["schema"] == 1
    assert set(document) >= {
        "trace",
        "run",
        "balanced",
        "unaccounted_samples",
        "faults",
        "segments",
        "barge_ins",
        "findings",
    }
    assert set(document["trace"]) >= TRACE
    assert document["trace"]["boundaries"] == ["captured", "pushed", "sent"]
    assert document["trace"]["resolution_ms"]["sent"] == 10.0
    assert document["trace"]["labels"] == {"job": "j-1"}
    assert document["trace"]["options"] == {"false_interruption_timeout_s": 0.6}
    assert document["run"]["scenario"] == "barge-in"
    assert set(document["run"]) >= {"pacing", "frame_ms", "rate_hz", "reply_ms", "control"}
    assert document["run"]["control"] == {
        "segment": 2,
        "captured_samples": 9620,
        "sent_samples": 9600,
        "whole": True,
    }
    assert document["balanced"] is True
    assert document["unaccounted_samples"] == 0
    assert document["findings"] == []
    segment = document["segments"][0]
    assert set(segment) >= SEGMENT
    assert all(set(segment[boundary]) == AMOUNT for boundary in ("captured", "pushed", "sent"))
    assert segment["order"][0] == {"mark": "pause", "at_ms": 210.002}
    barge_in = document["barge_ins"][0]
    assert set(barge_in) >= BARGE_IN
    for shape in ("leaked", "after_onset", "after_pause"):
        for boundary in ("pushed", "sent"):
            assert set(barge_in[shape][boundary]) == {*AMOUNT, "spans"}
    assert set(barge_in["leaked"]["sent"]["spans"][0]) == {
        "start_ms",
        "stop_ms",
        "start_sample",
        "stop_sample",
    }
    assert set(barge_in["causes"][0]) == {"cause", "samples", "ms"}


def test_several_traces_are_one_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for n in range(2):
        write(tmp_path / f"call-{n}.jsonl", barge_in_call())
    assert report(tmp_path, "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {"schema", "analyses", "summary"}
    assert [Path(a["trace"]["path"]).name for a in document["analyses"]] == [
        "call-0.jsonl",
        "call-1.jsonl",
    ]
    assert document["summary"]["outcomes"] == {"committed": 2}
    assert document["summary"]["leaked"]["sent"]["worst_ms"] == 10.0


def test_a_control_that_never_reached_the_sink_is_not_whole(tmp_path: Path) -> None:
    events = [*barge_in_call(control=False), ControlStarted(9000 * MS, "control")]
    analysis = analyze(write(tmp_path / "call.jsonl", events))
    assert analysis.run is not None
    assert analysis.run.control is not None
    assert dataclasses.asdict(analysis.run.control) == {
        "segment": None,
        "captured_samples": 0,
        "sent_samples": 0,
        "whole": False,
    }


def test_the_report_goes_into_a_file(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(trace, "--format", "json", "-o", tmp_path / "report.json") == 0
    assert capsys.readouterr().out == ""
    assert json.loads((tmp_path / "report.json").read_text())["balanced"] is True


def test_a_file_that_cannot_be_written_is_one_line(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(trace, "-o", tmp_path / "missing" / "report.txt") == 1
    assert_one_line(capsys.readouterr().err)


# --- Bad input -----------------------------------------------------------------------------------


def assert_one_line(text: str) -> None:
    assert text.startswith("sinkprobe: ")
    assert text.count("\n") == 1
    assert "Traceback" not in text


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b"not json\n",
        b"[1, 2]\n",
        b'{"event":"captured","at_ns":1}\n',
        b'{"event":"header","schema":99,"started_monotonic_ns":0,"started_unix_s":0}\n',
        bytes(range(256)),
    ],
)
def test_what_is_no_trace_is_one_line_and_exit_code_1(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    assert report(path) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert_one_line(err)


def test_a_missing_file_and_an_empty_folder_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(tmp_path / "missing.jsonl") == 1
    assert_one_line(capsys.readouterr().err)
    assert report(tmp_path) == 1
    assert_one_line(capsys.readouterr().err)


def test_a_bad_trace_does_not_hide_the_good_ones(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (trace.parent / "bad.jsonl").write_text("nothing\n")
    assert report(trace.parent, "--format", "json") == 1
    out, err = capsys.readouterr()
    assert_one_line(err)
    assert json.loads(out)["balanced"] is True


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_a_damaged_trace_never_raises_and_never_balances_wrongly(
    tmp_path: Path, data: st.DataObject
) -> None:
    lines = DAMAGED.get("lines") or DAMAGED.setdefault(
        "lines", write(tmp_path / "sound.jsonl", barge_in_call()).read_bytes().splitlines(True)
    )
    lines = list(lines)
    for _ in range(data.draw(st.integers(1, 4))):
        nth = data.draw(st.integers(1, len(lines) - 1))
        how = data.draw(st.sampled_from(["drop", "double", "cut", "swap", "digit"]))
        if how == "drop":
            del lines[nth]
        elif how == "double":
            lines.insert(nth, lines[nth])
        elif how == "cut":
            lines[nth] = lines[nth][: data.draw(st.integers(0, len(lines[nth])))]
        elif how == "swap":
            other = data.draw(st.integers(1, len(lines) - 1))
            lines[nth], lines[other] = lines[other], lines[nth]
        else:
            digits = [i for i, byte in enumerate(lines[nth]) if chr(byte).isdigit()]
            if digits:
                at = data.draw(st.sampled_from(digits))
                digit = data.draw(st.sampled_from("0123456789")).encode()
                lines[nth] = lines[nth][:at] + digit + lines[nth][at + 1 :]
    path = tmp_path / "damaged.jsonl"
    path.write_bytes(b"".join(lines))
    analysis = analyze(path)
    terminal.render([analysis])
    if analysis.balanced:
        total = analysis.totals
        assert total.captured_samples == sum(
            (total.pushed_samples or 0, total.dropped_samples or 0, total.held_samples or 0)
        )
        assert total.pushed_samples == sum(
            (total.sent_samples or 0, total.cleared_samples or 0, total.queued_samples or 0)
        )


DAMAGED: dict[str, list[bytes]] = {}


def test_absurd_numbers_make_no_balance_and_no_traceback(tmp_path: Path) -> None:
    events: list[Event] = [
        *barge_in_call(),
        FrameCaptured(9000 * MS, 61, 10**17, 10**9, 10**7, 1024, "s9", "returned"),
        FrameCaptured(10**17, 62, 10**17 + 10**9, 10**9, 1, 1, "s9", "returned"),
    ]
    analysis = analyze(write(tmp_path / "call.jsonl", events))
    assert analysis.balanced is not True
    terminal.render([analysis])


# --- Without livekit, and as a program -----------------------------------------------------------

BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "livekit":
            raise ImportError("livekit is blocked: " + name)

sys.meta_path.insert(0, Blocked())
import reports
analysis = reports.analyze(sys.argv[1])
assert analysis.barge_ins[0].leaked["sent"].ms == 10.0
from probe.cli.main import main
code = main(["report", sys.argv[1]]) or main(["--help"])
assert not [name for name in sys.modules if name.partition(".")[0] == "livekit"]
sys.exit(code)
"""


def program(
    *arguments: str | Path, code: Sequence[str] = ("-m", "probe.cli.main"), **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *code, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_reports_need_no_livekit(trace: Path) -> None:
    done = program(trace, code=("-c", BLOCKED))
    assert done.returncode == 0, done.stderr
    assert "leaked after the verdict" in done.stdout


def test_a_terminal_that_knows_no_dash_gets_a_report_all_the_same(trace: Path) -> None:
    done = program("report", trace, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "leaked after the verdict" in done.stdout


def test_columns_are_honoured(trace: Path) -> None:
    done = program("report", trace, COLUMNS="60")
    assert max(len(line) for line in done.stdout.splitlines()) <= 60


def test_an_hour_is_analysed_whole(tmp_path: Path) -> None:
    analysis = analyze(write_hour(tmp_path / "hour.jsonl", minutes=5))
    assert analysis.balanced is True
    assert len(analysis.barge_ins) == 5
    assert all(b.leaked and b.leaked["sent"] for b in analysis.barge_ins)


def test_a_report_is_never_written_over_a_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "call.jsonl", [])
    before = path.read_bytes()
    assert main(["report", str(tmp_path), "-o", str(path)]) == 2
    assert "found one of the traces" in capsys.readouterr().err
    assert path.read_bytes() == before
