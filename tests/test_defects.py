"""Every rule, both ways, on real calls: it fires on a sink or a framework with just that defect,
with the right cause and number of samples, and is silent on the mended one.

All calls are made once for the file, in children.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cache

import pytest

from probe.scenarios.releases import missing
from probe.testing import DEFECTS, Provocation
from reports import Analysis
from reports.findings import RULES
from reports.results import Finding, Segment
from reports.units import time_ms
from tests.calls_in_children import Wanted, analysed, run_all

pytestmark = [pytest.mark.livekit, pytest.mark.timeout(600)]

PROVOCATIONS = [each for provocations in DEFECTS.values() for each in provocations]
BLOCK = 240
"""Samples the source sends at a time: what a count at *sent* may be off by."""
FRAME = 1200
"""Samples of the sinks' own frames."""

Check = Callable[[Analysis, Finding], bool]


def named(provocation: Provocation) -> str:
    return f"{provocation.rule}: {provocation.name}"


def _wanted(provocation: Provocation) -> Wanted:
    return Wanted(provocation.scenario, provocation.sink, provocation.driver, provocation.model)


Traces = Callable[[Provocation], Analysis]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Traces:
    """The analysis of a provocation's call, or of its cure's; one that is shared is made once."""
    calls = [_wanted(each) for one in PROVOCATIONS for each in (one, one.cure)]
    distinct = {repr(call): call for call in calls if missing(call.scenario) is None}
    became = run_all(distinct, tmp_path_factory.mktemp("defects"))

    @cache
    def analysis(call: str) -> Analysis:
        return analysed(became[call])

    def of(provocation: Provocation) -> Analysis:
        call = repr(_wanted(provocation))
        if call not in distinct:
            pytest.skip("the installed release can't run it")
        return analysis(call)

    return of


def fired(provocation: Provocation, analysis: Analysis) -> list[Finding]:
    return [finding for finding in analysis.findings if finding.rule == provocation.rule]


# -- what the findings have to say --


def about(samples: int) -> Check:
    """So many samples, to a block."""
    return lambda _, finding: abs((finding.evidence.samples or 0) - samples) <= BLOCK


def exactly(samples: int) -> Check:
    return lambda _, finding: finding.evidence.samples == samples


def says(key: str, value: object) -> Check:
    return lambda _, finding: finding.evidence.facts[key] == value


def segment_of(analysis: Analysis, finding: Finding) -> Segment:
    assert finding.segment is not None
    return analysis.segments[finding.segment - 1]


def leaked(cause: str, *checks: Check) -> Check:
    """Nearly all of the leak has this cause, and its parts add up to the leak."""

    def check(analysis: Analysis, finding: Finding) -> bool:
        parts = {part.cause: part.samples for part in finding.evidence.parts}
        barge_in = next(each for each in analysis.barge_ins if each.verdict_ns is not None)
        leak = (barge_in.leaked or {})["sent"]
        assert leak is not None
        assert sum(parts.values()) == finding.evidence.samples == leak.samples
        assert leak.samples - parts[cause] <= BLOCK, parts
        return all(each(analysis, finding) for each in checks)

    return check


def after_its_claim(analysis: Analysis, finding: Finding) -> bool:
    """What was sent beyond the position the sink, by its own clock, stopped at."""
    segment = segment_of(analysis, finding)
    assert segment.sent is not None
    assert segment.claimed_position_ns is not None
    beyond = segment.sent.samples - round(time_ms(segment.claimed_position_ns) * 24)
    return abs((finding.evidence.samples or 0) - beyond) <= 3 * BLOCK


def all_that_is_missing(analysis: Analysis, finding: Finding) -> bool:
    segment = segment_of(analysis, finding)
    assert segment.captured is not None
    assert segment.sent is not None
    missing_samples = segment.captured.samples - segment.sent.samples
    return abs((finding.evidence.samples or 0) - missing_samples) <= BLOCK


def took(cause: str, samples: int) -> Check:
    return lambda _, finding: (
        (cause, samples) in [(part.cause, part.samples) for part in finding.evidence.parts]
    )


def measures(least: float, most: float = float("inf")) -> Check:
    return lambda _, finding: least <= finding.evidence.figure.value <= most


def because(word: str) -> Check:
    def check(_: Analysis, finding: Finding) -> bool:
        reasons = finding.evidence.facts["reasons"]
        return len(reasons) == 1 and word in reasons[0]

    return check


def unopened(_: Analysis, finding: Finding) -> bool:
    """Whether it is pulled before it is played is the release's own affair."""
    return finding.evidence.facts["how"] in ("never pulled", "pulled, never opened")


def parked(_: Analysis, finding: Finding) -> bool:
    """Whole frames of the sink, the last one of the reply shorter."""
    reply = 1495 * 24
    samples = finding.evidence.samples or 0
    return 0 < samples < reply and samples % FRAME == reply % FRAME


EXPECTED: dict[str, Check] = {
    "leak-after-verdict: not stopped: the audio stream is slow to close": leaked("not-stopped"),
    "leak-after-verdict: the queue plays on after a pause": leaked("queue-played-on"),
    "leak-after-verdict: the pause is ignored": leaked("queue-played-on"),
    "leak-after-verdict: the source is never cleared": leaked("clear-pending", after_its_claim),
    "leak-after-verdict: the source is cleared late": leaked("clear-pending", after_its_claim),
    "leak-after-verdict: pushed after the clear": leaked(
        "after-clear: pushed-late", about(4 * FRAME)
    ),
    "leak-after-verdict: the rest of a long frame": leaked("after-clear: rest-of-long-frame"),
    "resume-before-clear: resumed before cleared": parked,
    "never-cleared: nobody clears": lambda analysis, finding: (
        finding.evidence.samples == (analysis.barge_ins[0].leaked or {})["sent"].samples  # type: ignore[union-attr]
    ),
    "resumed-after-verdict: no transcript confirms the model's verdict": says(
        "false_interruption", True
    ),
    "old-audio-in-new-segment: the sink keeps its buffer": about(4 * FRAME),
    "late-frames: captured after the clear": exactly(4 * FRAME),
    "late-frames: the sink swallows the cancellation": measures(1),
    "swallowed-audio: the source is cleared in the middle": all_that_is_missing,
    "swallowed-audio: a resume drops frames": took("discarded by a pause", 4 * FRAME),
    "sink-refuses: a cancelled future": exactly(480),
    "sink-refuses: another rate than the source's": says("how", "refused by the source"),
    "relabelled-rate: 16 kHz played as 24 kHz": measures(50, 50),
    "swallowed-reply: muted after a clear": exactly(24_072),
    "speaking-but-silent: the sink holds audio back": measures(1000),
    "speaking-but-silent: the TTS stalls": measures(1000),
    "gate-left-closed: nobody resumes": says("opened", False),
    "gap-in-speech: held in the sink": says("kind", "held in the sink"),
    "gap-in-speech: starved: the TTS stalls": says("kind", "starved"),
    "position-off: claims more than was sent": measures(380, 420),
    "finished-uninterrupted: cut, reported as not interrupted": all_that_is_missing,
    "finished-uninterrupted: whole, reported as interrupted": says("reported_interrupted", True),
    "committed-unheard: nothing is played": lambda analysis, finding: (
        finding.evidence.samples == segment_of(analysis, finding).captured.samples  # type: ignore[union-attr]
    ),
    "finish-before-sent: finished when handed over": measures(100),
    "caller-ignored: interruptions not allowed": because("not allowed"),
    "caller-ignored: echo warm-up": because("warm-up"),
    "caller-ignored: too few words": because("min_words"),
    "caller-ignored: too short": because("min_duration"),
    "caller-ignored: a backchannel for the model": because("backchannel"),
    "resume-burst: interrupted right after a resume": measures(100),
    "stale-verdict: the verdict is about the reply before": lambda _, finding: finding.segment == 2,
    "capture-stalled: the sink waits in a capture": measures(1000),
    "bad-geometry: empty frames": says("empty_frames", 1),
    "bad-geometry: the rate changes": says("changes", 1),
    "ghost-message: a second message nobody played": unopened,
    "ghost-message: interrupted before its first frame": says("how", "opened, never played"),
    "lost-message: deleted as it is truncated": says("missing", "server"),
    "lost-message: without text": says("missing", "local"),
    "truncation-off: truncated elsewhere": measures(380, 420),
    "cancel-missing: never cancelled": measures(100),
    "cancel-misdirected: cancelled when the next has begun": says("hit", [2]),
    "generation-overrun: the server takes its time": measures(400),
    "generation-overrun: never cancelled": measures(400),
}
"""By provocation, what has to hold of the first finding beside its rule."""


def test_every_rule_has_a_call_that_provokes_it() -> None:
    assert set(DEFECTS) == set(RULES)


def test_what_is_expected_is_provoked() -> None:
    assert set(EXPECTED) <= {named(provocation) for provocation in PROVOCATIONS}


@pytest.mark.parametrize("provocation", PROVOCATIONS, ids=named)
def test_a_rule_fires_on_the_defect(traces: Traces, provocation: Provocation) -> None:
    analysis = traces(provocation)
    findings = fired(provocation, analysis)
    assert findings, [finding.message for finding in analysis.findings]
    check = EXPECTED.get(named(provocation))
    assert check is None or check(analysis, findings[0]), findings[0]


@pytest.mark.parametrize("provocation", PROVOCATIONS, ids=named)
def test_and_is_silent_where_it_is_mended(traces: Traces, provocation: Provocation) -> None:
    analysis = traces(provocation.cure)
    assert analysis.balanced is True
    assert [finding.message for finding in fired(provocation, analysis)] == []


def test_a_defect_is_described_without_loading_livekit() -> None:
    code = "import sys; from probe.testing import DEFECTS; sys.exit('livekit' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
