"""Scripted calls on sinks that do something to the audio: they balance, and their leak is told."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from probe.scenarios import CATALOGUE, Axes
from probe.trace.reader import read_trace
from tests.ahead import Begun
from tests.calls_in_children import Wanted, analysed, run_all

pytestmark = [pytest.mark.livekit, pytest.mark.timeout(300)]

AXES = Axes(pacing="burst", reply_ms=995, at=300)
FOLLOWED = {
    "Volume": "gain",
    "FadeIn": "gain",
    "Dither": "noise",
    "Comfort": "added",
    "Stutter": "added",
}
SCENARIOS = ("uninterrupted", "programmatic")


def _calls(folder: Path) -> dict[str, Path | str]:
    wanted = {
        f"{sink} {name}": Wanted(CATALOGUE[name].with_axes(AXES), f"tests.habit_sinks:{sink}")
        for sink in (*FOLLOWED, "Mixer")
        for name in SCENARIOS
    }
    return run_all(wanted, folder)


AHEAD = {"calls": _calls}


@pytest.fixture(scope="module")
def traces(begun: Begun) -> Any:
    return begun("calls")


def habits(trace: Path | str) -> Counter[str | None]:
    assert isinstance(trace, Path), trace
    read = read_trace(trace)
    return Counter(read.text(int(habit)) for habit in read.pushed.habit)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("sink", FOLLOWED)
def test_what_an_ordinary_sink_does_is_followed(
    traces: dict[str, Path | str], sink: str, scenario: str
) -> None:
    trace = traces[f"{sink} {scenario}"]
    analysis = analysed(trace)
    assert analysis.balanced is True, analysis.unaccounted_because
    # Where a fade has come to full volume only the rounding is left of it.
    assert set(habits(trace)) <= {None, FOLLOWED[sink], *(["noise"] if sink == "FadeIn" else [])}
    assert habits(trace)[FOLLOWED[sink]] > 0
    added = sum(segment.added_samples or 0 for segment in analysis.segments)
    assert bool(added) == (FOLLOWED[sink] == "added")


@pytest.mark.parametrize("sink", FOLLOWED)
def test_what_leaks_is_told_to_the_sample_on_it(traces: dict[str, Path | str], sink: str) -> None:
    """The call interrupts, the sink empties its source: nothing of the speech goes out."""
    analysis = analysed(traces[f"{sink} programmatic"])
    (barge_in,) = analysis.barge_ins
    assert barge_in.leaked is not None
    leaked = barge_in.leaked["sent"]
    assert leaked is not None
    # Silence of the sink's own can't be told from the silence of an emptied source.
    ambiguous = sum(segment.ambiguous_samples for segment in analysis.segments)
    assert leaked.samples <= 240 + (ambiguous if sink == "Comfort" else 0)
    assert [s.dropped_samples for s in analysis.segments] != [None, None]


def test_a_sink_that_mixes_leaves_its_segments_unjudged_and_nothing_else(
    traces: dict[str, Path | str],
) -> None:
    analysis = analysed(traces["Mixer uninterrupted"])
    assert set(habits(traces["Mixer uninterrupted"])) == {"changed"}
    assert analysis.unaccounted_samples == 0
    assert analysis.balanced is None
    assert [s.dropped_samples for s in analysis.segments] == [None] * len(analysis.segments)
    assert [s.pushed is not None and s.sent is not None for s in analysis.segments] == [True, True]
