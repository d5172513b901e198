"""Traces that were read wrongly once, with the right values."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports import Analysis, Finding, analyze, summarize

CASES = Path(__file__).parent / "cases"
MS = 1_000_000


def case(name: str, **settings: dict[str, float]) -> Analysis:
    chosen = {rule.replace("_", "-"): values for rule, values in settings.items()}
    return analyze(CASES / f"{name}.jsonl", settings=chosen)


def found(analysis: Analysis, rule: str) -> list[Finding]:
    return [finding for finding in analysis.findings if finding.rule == rule]


def test_audio_a_sink_keeps_back_is_held_in_it_and_not_starved() -> None:
    """960 of the 2400 samples captured at 55.4 ms were pushed at 148.5 ms."""
    thresholds = {"starved-ms": 30.0, "blocked-ms": 30.0}
    (finding,) = found(case("held-in-sink", gap_in_speech=thresholds), "gap-in-speech")
    assert finding.evidence.facts["kind"] == "held in the sink"
    assert finding.evidence.figure.exact == pytest.approx(40 * MS, abs=MS)
    assert finding.evidence.moments[0].at_ns == pytest.approx(117.4 * MS, abs=MS)
    # From when it had nothing to send until what it had been given was pushed.
    waited = finding.evidence.facts["waited_ns"]
    assert waited == pytest.approx((148.5 - 117.4) * MS, abs=MS)
    assert "kept audio back" in finding.cause


def test_audio_relabelled_with_another_rate_is_played_too_fast() -> None:
    analysis = case("pitch")
    (finding,) = found(analysis, "relabelled-rate")
    assert finding.severity == "error"
    assert finding.evidence.samples == 66_150
    assert finding.evidence.figure.value == 8.8
    assert "3000.0 ms (66150 samples) were played in 2756.2 ms" in finding.message
    (segment,) = [s for s in analysis.segments if s.index == finding.segment]
    assert segment.captured is not None
    assert segment.pushed is not None
    assert (segment.captured.samples, segment.captured.rate_hz) == (66_150, 22_050)
    assert (segment.pushed.samples, segment.pushed.rate_hz) == (66_150, 24_000)


def test_frames_refused_for_their_rate_are_no_interruption() -> None:
    analysis = case("rate-refused")
    refusals = found(analysis, "sink-refuses")
    assert [finding.segment for finding in refusals] == [1, 2]
    for finding in refusals:
        assert "They are of 24000 Hz, and the source takes 48000 Hz." in finding.message
        assert "No interruption has anything to do with it" in finding.cause
        assert "sample_rate" in finding.remedy
    for finding in found(analysis, "swallowed-audio"):
        assert "pause" not in finding.remedy
        assert "refused" in finding.cause
    assert analysis.barge_ins == ()


def test_barge_ins_on_replies_that_never_came_dilute_no_figure() -> None:
    analysis = case("unanswered")
    audible = [b for b in analysis.barge_ins if b.has_audio]
    assert [b.segment for b in audible] == [1]
    summary = summarize([analysis])
    assert summary.barge_ins == 1
    assert summary.leaked["sent"] is not None
    assert summary.leaked["sent"].median_ns == 40 * MS
    with_audio = {segment.speech_id for segment in analysis.segments}
    assert all(b.segment is not None for b in analysis.barge_ins if b.speech_id in with_audio)
