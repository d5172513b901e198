"""What sinks do to audio is recognised only where it is certain: what once was not noticed by any
test when the code that is so strict was changed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from probe.follow import FlowMatcher
from probe.follow.habits import scaling
from tests.test_habits import FRAME, PUSH, follow, habits, joined, recut, speech

Samples = NDArray[np.int16]


def noise(loud: float, values: int, seed: int = 1) -> Samples:
    return np.round(np.random.default_rng(seed).standard_normal(values) * loud).astype(np.int16)


def how(heard: Samples, given: Samples) -> tuple[str, float] | None:
    found = scaling(heard.tobytes(), given.tobytes())
    return None if found is None else (found.habit, round(found.gain, 2))


def halved(given: Samples) -> Samples:
    return np.round(given * 0.5).astype(np.int16)


# --- Scaled or not --------------------------------------------------------------------------------


def test_a_gain_is_told_with_its_size_and_noise_has_none() -> None:
    given = noise(3000, 1200)
    assert how(halved(given), given) == ("gain", 0.5)
    assert how(given + 1, given) == ("noise", 1.0)


@pytest.mark.parametrize("at", [0, 600, 1199])
def test_one_value_that_is_off_is_one_too_many(at: int) -> None:
    given = noise(3000, 1200)
    for heard in (halved(given), given.copy()):
        heard[at] += 100
        assert how(heard, given) is None


@pytest.mark.parametrize("part", [slice(0, 240), slice(480, 720), slice(960, 1200)])
def test_a_gain_with_dither_is_neither(part: slice) -> None:
    given = noise(3000, 1200)
    heard = halved(given)
    heard[part] += np.random.default_rng(2).choice([-3, 3], 240).astype(np.int16)
    assert how(heard, given) is None


def test_silence_is_nothing_scaled_to_nothing() -> None:
    given, silence = noise(3000, 1200), np.zeros(1200, np.int16)
    assert how(silence, given) is None
    assert how(given, silence) is None
    assert how(noise(8, 1200), given) is None


def test_a_stretch_too_short_to_tell_is_not_judged() -> None:
    given = noise(3000, 32)
    assert how(halved(given), given) == ("gain", 0.5)
    assert how(halved(given[:31]), given[:31]) is None
    assert how(halved(given[:31]), given) is None


def test_a_volume_that_cuts_off_is_told_by_what_is_not_cut_off() -> None:
    for loud, expected in ((10_000, ("gain", 4.0)), (30_000, None)):
        given = noise(loud, 1200)
        heard = np.clip(given * 4.0, -32768, 32767).astype(np.int16)
        assert how(heard, given) == expected


def test_a_quiet_stretch_between_louder_ones_has_their_gain() -> None:
    given = np.concatenate([noise(3000, 240), noise(5, 240), noise(3000, 240)])
    assert how(halved(given), given) == ("gain", 0.5)
    heard = halved(given)
    heard[240:480] = noise(5, 240, seed=9)
    assert how(heard, given) is None


# --- Where it lies --------------------------------------------------------------------------------


def pushed(flow: FlowMatcher, heard: Samples) -> list[tuple[int | None, int]]:
    matches = [m for n, p in enumerate(recut(iter([heard]))) for m in flow.push(n, p.tobytes())]
    return joined(matches + flow.finish())


def test_a_quiet_reply_after_a_clear_is_found_where_the_sink_was_cleared() -> None:
    # Too quiet to be looked for: it would resemble itself next to its place.
    flow = FlowMatcher()
    dropped, reply = noise(60, 4800), noise(60, 4800, seed=2)
    flow.capture(dropped.tobytes())
    assert pushed(flow, halved(dropped[:2400])) == [(0, 2400)]
    flow.clear()
    flow.capture(reply.tobytes())
    assert pushed(flow, halved(reply)) == [(4800, 4800)]


def test_a_quiet_passage_is_found_among_loud_ones() -> None:
    flow = FlowMatcher()
    head, left_out, loud, quiet = (
        noise(500, 2400), noise(500, 2400, 2), noise(9000, 48_000, 3), noise(500, 4800, 4)
    )  # fmt: skip
    whole = np.concatenate([head, left_out, loud, quiet, loud])
    flow.capture(whole.tobytes())
    at = len(head) + len(left_out) + len(loud)
    assert pushed(flow, halved(head)) == [(0, 2400)]
    assert pushed(flow, halved(quiet)) == [(at, 4800)]


def test_what_is_faded_to_silence_goes_on_where_it_was_and_is_in_doubt() -> None:
    given = np.concatenate(speech(20))
    gain = np.concatenate([np.linspace(1, 0, 4800), np.zeros(len(given) - 4800)])
    matches = follow(
        [given[i : i + FRAME] for i in range(0, len(given), FRAME)],
        lambda _: iter([np.round(given * gain).astype(np.int16)]),
    )
    assert joined(matches) == [(0, 20 * FRAME)]
    silent = [match for match in matches if int(str(match.key)) * PUSH >= 4800]
    assert {match.habit for match in silent} == {"gain"}
    assert all(match.ambiguous_values == PUSH for match in silent)
    assert sum(match.added_values for match in matches) == 0


def test_what_is_turned_down_too_far_to_tell_goes_on_where_it_was_and_is_in_doubt() -> None:
    given = np.concatenate(speech(20))
    gain = np.where(np.arange(len(given)) < 4800, 0.5, 0.001)
    heard = np.round(given * gain).astype(np.int16)
    assert heard[4800:].any()
    flow = FlowMatcher()
    flow.capture(given.tobytes())
    matches = [m for n, p in enumerate(recut(iter([heard]))) for m in flow.push(n, p.tobytes())]
    matches += flow.finish()
    assert joined(matches) == [(0, 20 * FRAME)]
    assert habits(matches) == {"gain"}
    assert [match.ambiguous_values for match in matches] == [0] * 4 + [PUSH] * 4


def test_no_more_is_found_of_what_is_turned_down_than_was_captured() -> None:
    given = np.concatenate(speech(10))
    flow = FlowMatcher()
    flow.capture(given.tobytes())
    assert pushed(flow, halved(given)) == [(0, 10 * FRAME)]
    assert pushed(flow, noise(3, PUSH)) == [(None, PUSH)]
