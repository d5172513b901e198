"""What ordinary sinks do to audio: it is followed where that can be done, and said what it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from probe.follow import FlowMatcher, Match
from probe.follow.habits import scaling

Samples = NDArray[np.int16]
Sink = Callable[[Sequence[Samples]], Iterator[Samples]]

FRAME = 480
PUSH = 1200


def speech(frames: int, seed: int = 1) -> list[Samples]:
    """Noise whose loudness comes and goes, as in speech, a frame at a time."""
    rng = np.random.default_rng(seed)
    count = frames * FRAME
    loud = 200 + 4000 * np.abs(np.sin(np.arange(count) / 3000.0))
    whole = np.clip(rng.standard_normal(count) * loud, -30000, 30000).astype(np.int16)
    return [whole[i : i + FRAME] for i in range(0, count, FRAME)]


def recut(pieces: Iterator[Samples], size: int = PUSH) -> Iterator[Samples]:
    """In pieces of another size, as the room output hands them on."""
    rest = np.zeros(0, np.int16)
    for piece in pieces:
        rest = np.concatenate((rest, piece))
        while len(rest) >= size:
            yield rest[:size]
            rest = rest[size:]
    if len(rest):
        yield rest


def follow(frames: Sequence[Samples], sink: Sink) -> list[Match]:
    """What the matcher says of every push; a frame is captured before any of it is pushed."""
    flow = FlowMatcher()
    for frame in frames:
        flow.capture(frame.tobytes())
    matches: list[Match] = []
    for number, push in enumerate(recut(sink(frames))):
        matches += flow.push(number, push.tobytes())
    return matches + flow.finish()


def joined(matches: list[Match]) -> list[tuple[int | None, int]]:
    """The parts of all pushes, neighbours in one."""
    parts: list[tuple[int | None, int]] = []
    for position, count in (part for match in matches for part in match.parts):
        last = parts[-1] if parts else None
        if last is not None and last[0] is None and position is None:
            parts[-1] = (None, last[1] + count)
        elif last is not None and last[0] is not None and position == last[0] + last[1]:
            parts[-1] = (last[0], last[1] + count)
        else:
            parts.append((position, count))
    return parts


def habits(matches: list[Match]) -> set[str | None]:
    return {match.habit for match in matches}


def volume(gain: float) -> Sink:
    def sink(frames: Sequence[Samples]) -> Iterator[Samples]:
        for frame in frames:
            yield np.clip(np.round(frame * gain), -32768, 32767).astype(np.int16)

    return sink


def fade_out(frames: Sequence[Samples]) -> Iterator[Samples]:
    whole = np.concatenate(frames)
    gain = np.clip(np.linspace(1.5, 0.0, len(whole)), 0, 1)
    yield np.round(whole * gain).astype(np.int16)


def curved_fade(frames: Sequence[Samples]) -> Iterator[Samples]:
    whole = np.concatenate(frames)
    gain = 0.5 + 0.5 * np.cos(np.linspace(0, np.pi * 0.9, len(whole)))
    yield (whole * gain).astype(np.int16)


def dither(frames: Sequence[Samples]) -> Iterator[Samples]:
    rng = np.random.default_rng(5)
    for frame in frames:
        yield (frame + rng.integers(-1, 2, len(frame))).astype(np.int16)


@pytest.mark.parametrize("gain", [0.1, 0.5, 0.93, 1.3, 4.0])
def test_a_volume_control_is_followed_to_the_sample(gain: float) -> None:
    frames = speech(50)
    matches = follow(frames, volume(gain))
    assert joined(matches) == [(0, 50 * FRAME)]
    assert habits(matches) == {"gain"}
    assert sum(match.ambiguous_values for match in matches) == 0


@pytest.mark.parametrize("sink", [fade_out, curved_fade])
def test_a_fade_is_followed_as_long_as_it_can_be_heard(sink: Sink) -> None:
    matches = follow(speech(50), sink)
    assert joined(matches) == [(0, 50 * FRAME)]
    assert habits(matches) <= {None, "gain"}
    assert "gain" in habits(matches)


def test_dither_is_noise_on_audio_that_is_otherwise_the_same() -> None:
    matches = follow(speech(50), dither)
    assert joined(matches) == [(0, 50 * FRAME)]
    assert habits(matches) == {"noise"}


def test_a_louder_reply_after_what_a_pause_dropped_is_found_where_it_goes_on() -> None:
    def sink(frames: Sequence[Samples]) -> Iterator[Samples]:
        yield from volume(0.5)([*frames[:20], *frames[35:]])

    matches = follow(speech(60), sink)
    assert joined(matches) == [(0, 20 * FRAME), (35 * FRAME, 25 * FRAME)]


def test_a_volume_that_is_turned_back_is_followed_as_it_is_again() -> None:
    def sink(frames: Sequence[Samples]) -> Iterator[Samples]:
        yield from volume(0.4)(frames[:25])
        yield from frames[25:]

    matches = follow(speech(50), sink)
    assert joined(matches) == [(0, 50 * FRAME)]
    assert matches[-1].habit is None


@pytest.mark.parametrize("at", [0, 20, 50])
def test_silence_the_sink_puts_in_is_its_own(at: int) -> None:
    def sink(frames: Sequence[Samples]) -> Iterator[Samples]:
        yield from frames[:at]
        yield np.zeros(2000, np.int16)
        yield from frames[at:]

    matches = follow(speech(50), sink)
    parts = joined(matches)
    assert [count for position, count in parts if position is None] == [2000]
    assert sum(count for position, count in parts if position is not None) == 50 * FRAME
    assert sum(match.added_values for match in matches) == 2000
    assert habits(matches) <= {None, "added"}


def test_a_frame_handed_on_twice_is_the_sinks_own_the_second_time() -> None:
    def sink(frames: Sequence[Samples]) -> Iterator[Samples]:
        yield from frames[:20]
        yield from frames[17:19]
        yield from frames[20:]

    matches = follow(speech(50), sink)
    assert joined(matches) == [(0, 20 * FRAME), (None, 2 * FRAME), (20 * FRAME, 30 * FRAME)]
    assert sum(match.added_values for match in matches) == 2 * FRAME


def test_silence_that_is_passed_over_is_named() -> None:
    silent = [np.zeros(FRAME, np.int16)] * 10
    frames = [*speech(20), *silent, *speech(20, seed=2)]

    def sink(given: Sequence[Samples]) -> Iterator[Samples]:
        yield from (frame for frame in given if frame.any())

    matches = follow(frames, sink)
    assert joined(matches) == [(0, 20 * FRAME), (30 * FRAME, 20 * FRAME)]
    assert [skip for match in matches for skip in match.skipped] == [(20 * FRAME, 10 * FRAME)]


def test_audio_that_is_passed_over_is_nobodys_habit() -> None:
    matches = follow(speech(50), lambda frames: iter([*frames[:20], *frames[30:]]))
    assert joined(matches) == [(0, 20 * FRAME), (30 * FRAME, 20 * FRAME)]
    assert [skip for match in matches for skip in match.skipped] == []


def resampled(frames: Sequence[Samples]) -> Iterator[Samples]:
    whole = np.concatenate(frames).astype(np.float64)
    at = np.arange(0, len(whole) - 1, 0.5)
    yield np.interp(at, np.arange(len(whole)), whole).astype(np.int16)


def mixed(frames: Sequence[Samples]) -> Iterator[Samples]:
    music = speech(len(frames), seed=9)
    for frame, other in zip(frames, music, strict=True):
        yield (frame // 2 + other // 2).astype(np.int16)


@pytest.mark.parametrize("sink", [resampled, mixed])
def test_what_is_changed_beyond_recognition_is_joined_to_nothing(sink: Sink) -> None:
    """Nor is the silence in it: that it is silence on both sides is no evidence."""
    silent = [np.zeros(FRAME, np.int16)] * 10
    matches = follow([*speech(20), *silent, *speech(20, seed=2), *silent], sink)
    assert {position for position, _ in joined(matches)} == {None}
    assert habits(matches) == {"changed"}
    assert sum(match.added_values for match in matches) == 0


def test_random_audio_is_never_taken_for_scaled() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        size = int(rng.integers(32, 1500))
        one, other = (rng.integers(-9000, 9000, size, dtype=np.int16).tobytes() for _ in range(2))
        assert scaling(one, other) is None


def test_audio_next_to_its_place_is_not_taken_for_scaled() -> None:
    """Speech resembles itself a sample later; the gain that fits has to explain every sample."""
    whole = np.cumsum(np.concatenate(speech(20))).astype(np.float64)
    smooth = np.round(whole / np.abs(whole).max() * 12000).astype(np.int16)
    for shift in (1, 2, 5, 40):
        heard, given = smooth[shift : shift + 1200], smooth[:1200]
        assert scaling((heard // 2).astype(np.int16).tobytes(), given.tobytes()) is None
