"""The reference sink gives the same account as the framework's room output, and a sink of one's
own takes its place by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probe.scenarios import CATALOGUE, Axes
from probe.scenarios.axes import PACINGS
from probe.testing import REFERENCE, check_sink
from reports import Analysis, analyze
from reports.units import time_ms
from tests.ahead import Begun
from tests.calls_in_children import Wanted, analysed, run_all

pytestmark = [pytest.mark.livekit, pytest.mark.timeout(300)]

UNINTERRUPTED = CATALOGUE["uninterrupted"]
AXES: dict[str, Axes] = {
    **{str(pacing): Axes(pacing=pacing, reply_ms=995, at=300) for pacing in PACINGS},
    "stereo": Axes(reply_ms=995, at=300, channels=2),
    "98.5 ms": Axes(reply_ms=995, at=300, frame_ms=98.5),
    "resampled": Axes(reply_ms=995, at=300, rate_hz=16_000),
}
SINKS: dict[str, str | None] = {"reference": REFERENCE, "room": None}
LOSES = "probe.testing:LosesMiddle"

NO_SINKS = {
    "nowhere.at:all": "sink: expected module:attribute that can be imported, found 'nowhere.at",
    "probe.testing": "sink: expected module:attribute that can be imported, found 'probe.testing'",
    "probe.testing:Nothing": "sink: expected module:attribute that can be imported, found",
    "probe.testing:DEFECTS": "sink: expected something to call, found probe.testing:DEFECTS",
    "builtins:pow": "the sink: expected an AudioOutput, found",
}

Calls = dict[str, Analysis]
Results = dict[str, Path | str]


def _calls(folder: Path) -> Results:
    wanted = {
        f"{sink} {axes}": Wanted(UNINTERRUPTED.with_axes(AXES[axes]), SINKS[sink])
        for sink in SINKS
        for axes in AXES
    }
    wanted["loses"] = Wanted(UNINTERRUPTED.with_axes(AXES["burst"]), LOSES)
    wanted |= {sink: Wanted(UNINTERRUPTED.with_axes(AXES["burst"]), sink) for sink in NO_SINKS}
    return run_all(wanted, folder)


AHEAD = {"calls": _calls}


@pytest.fixture(scope="module")
def results(begun: Begun) -> Any:
    return begun("calls")


@pytest.fixture(scope="module")
def calls(results: Results) -> Calls:
    made = {name: result for name, result in results.items() if name not in NO_SINKS}
    return {name: analysed(result) for name, result in made.items()}


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("sink", SINKS)
def test_nothing_is_found_where_nobody_interrupts(calls: Calls, sink: str, axes: str) -> None:
    analysis = calls[f"{sink} {axes}"]
    assert analysis.balanced is True
    assert not analysis.faults
    assert [finding.message for finding in analysis.findings if finding.severity != "info"] == []
    assert analysis.run is not None
    assert analysis.run.control is not None
    assert analysis.run.control.whole is True


@pytest.mark.parametrize("axes", AXES)
def test_the_reference_gives_the_room_outputs_account(calls: Calls, axes: str) -> None:
    def account(analysis: Analysis) -> list[tuple[object, ...]]:
        return [
            (
                segment.captured and segment.captured.samples,
                segment.pushed and segment.pushed.samples,
                segment.dropped_samples,
                segment.held_samples,
                segment.swallowed_samples,
                segment.interrupted,
                time_ms(segment.claimed_position_ns),
            )
            for segment in analysis.segments
        ]

    assert account(calls[f"reference {axes}"]) == account(calls[f"room {axes}"])


def test_audio_a_sink_loses_without_a_word_is_unaccounted_for_to_the_sample(calls: Calls) -> None:
    analysis = calls["loses"]
    assert analysis.balanced is False
    assert analysis.unaccounted_samples == 4 * 1200
    assert "captured positions 7200 to" in analysis.unaccounted_because[0]


OWN_SINK = '''
from probe.testing import ReferenceAudioOutput


class Late(ReferenceAudioOutput):
    """Has its source once it is started."""

    def __init__(self, rate_hz, channels):
        super().__init__(rate_hz, channels)
        self._made = [self.__dict__.pop("_audio_source")]

    async def start(self):
        self._audio_source = self._made[0]


def make(rate_hz, channels):
    return Late(rate_hz, channels)


'''


def test_a_sink_of_ones_own_is_tried_beside_the_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_sink.py").write_text(OWN_SINK, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    call = UNINTERRUPTED.with_axes(replace(AXES["burst"], at=300))
    (trial,) = check_sink("own_sink:make", tmp_path / "traces", calls=[call])
    assert trial.analysis.balanced is True
    assert trial.worse_than_reference == ()
    assert trial.analysis.segments[0].sent is not None
    assert analyze(trial.trace) == trial.analysis


def test_a_sink_that_is_none_is_one_clear_line(results: Results) -> None:
    for sink, said in NO_SINKS.items():
        error = results[sink]
        assert isinstance(error, str)
        assert said in error
        assert "\n" not in error
