"""What each gap in the sent audio waited for; its parts add up to it. 24 kHz, blocks of 240."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports import Analysis, Gap
from tests.findings_calls import HandCall
from tests.report_traces import MS

THRESHOLDS = {"gap-in-speech": {"starved-ms": 15.0, "blocked-ms": 15.0}}


def parts(gap: Gap) -> dict[str, float]:
    """What it waited for, in milliseconds, and nothing of nothing."""
    lasted = {
        "starved": gap.starved_ns,
        "held": gap.held_ns,
        "blocked": gap.blocked_ns,
        "stalled": gap.stalled_ns,
        "paused": gap.paused_ns,
    }
    assert sum(lasted.values()) == gap.ns
    return {name: ns / MS for name, ns in lasted.items() if ns}


def only_gap(call: HandCall, folder: Path) -> tuple[Analysis, dict[str, float]]:
    analysis = call.analysis(folder, settings=THRESHOLDS)
    assert analysis.balanced is True, analysis.unaccounted_because
    (gap,) = analysis.segments[0].gaps
    return analysis, parts(gap)


def kind(analysis: Analysis) -> object:
    (finding,) = [each for each in analysis.findings if each.rule == "gap-in-speech"]
    assert (finding.cause, finding.remedy) != ("", "")
    return finding.evidence.facts["kind"]


def after_a_gap(call: HandCall) -> HandCall:
    """100 ms before a gap from 110 ms to 310 ms, and 100 ms behind it."""
    call.mark(300.5, "flush").send(310, 100)
    return call.finished(411, 200).done(412)


def begun() -> HandCall:
    return HandCall().created(0).capture(1, 100).push(2, 100).send(10, 100)


def test_what_was_captured_only_later_was_starved(tmp_path: Path) -> None:
    call = begun().capture(300, 100).push(300.1, 100)
    analysis, waited = only_gap(after_a_gap(call), tmp_path)
    assert waited == {"starved": 190, "held": pytest.approx(0.1), "blocked": pytest.approx(9.9)}
    assert kind(analysis) == "starved"


def test_what_the_sink_kept_back_was_held_in_it(tmp_path: Path) -> None:
    call = begun().capture(3, 100).push(300, 100)
    analysis, waited = only_gap(after_a_gap(call), tmp_path)
    assert waited == {"held": 190, "blocked": 10}
    assert kind(analysis) == "held in the sink"


def test_what_was_in_the_source_was_blocked_there(tmp_path: Path) -> None:
    call = begun().capture(3, 100).push(3.1, 100)
    analysis, waited = only_gap(after_a_gap(call), tmp_path)
    assert waited == {"blocked": 200}
    assert kind(analysis) == "blocked in the source"


def test_a_rest_that_is_held_does_not_hide_that_the_others_were_starved(tmp_path: Path) -> None:
    """10 ms of it were in the sink all the time: had they been sent, 190 ms were still missing."""
    call = begun().capture(3, 10).capture(300, 90).push(300, 100)
    analysis, waited = only_gap(after_a_gap(call), tmp_path)
    assert waited == {"held": 10, "starved": 180, "blocked": 10}
    assert kind(analysis) == "starved"


def test_a_push_of_old_and_new_samples_is_not_dated_by_the_newest(tmp_path: Path) -> None:
    """All but the last 10 ms were in the sink, and would have filled all but the last 110 ms."""
    call = begun().capture(3, 90).capture(300, 10).push(300, 100)
    analysis, waited = only_gap(after_a_gap(call), tmp_path)
    assert waited == {"held": 90, "starved": 100, "blocked": 10}
    assert kind(analysis) == "starved"


def test_while_the_loop_stands_still_it_is_the_loops(tmp_path: Path) -> None:
    call = begun().capture(3, 100).push(300, 100).stalled(120, 170)
    analysis, waited = only_gap(after_a_gap(call), tmp_path)
    assert waited == {"held": 20, "stalled": 170, "blocked": 10}
    assert kind(analysis) == "loop stalled"


def test_a_stall_does_not_touch_what_was_in_the_source_already(tmp_path: Path) -> None:
    call = begun().capture(3, 100).push(3.1, 100).stalled(120, 170)
    _, waited = only_gap(after_a_gap(call), tmp_path)
    assert waited == {"blocked": 200}


def test_while_the_gate_is_shut_it_is_the_pauses(tmp_path: Path) -> None:
    call = begun().capture(3, 100).mark(110, "pause").mark(250, "resume").push(290, 100)
    analysis, waited = only_gap(after_a_gap(call), tmp_path)
    assert waited == {"paused": 140, "held": 40, "blocked": 20}
    (finding,) = [each for each in analysis.findings if each.rule == "gap-in-speech"]
    assert finding.evidence.figure.value == 60
    assert finding.evidence.facts["kind"] == "held in the sink"
