"""Known content: every sample of a call says which one it is."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.scenarios.audio import PERIOD, frame_bounds, known_samples

TEN_MS = 240


def test_no_sample_is_zero() -> None:
    assert np.all(known_samples(0, 3 * PERIOD) != 0)


def test_ten_milliseconds_occur_nowhere_else_in_the_call() -> None:
    samples = known_samples(0, 4 * PERIOD)
    # Two samples in a row are enough, but for chance; eight leave nothing to it.
    windows = np.lib.stride_tricks.sliding_window_view(samples, 8)
    rows = np.ascontiguousarray(windows).view(np.dtype((np.void, 16))).ravel()
    assert len(np.unique(rows)) == len(rows)
    assert TEN_MS >= 8


@given(st.integers(0, 3 * PERIOD), st.integers(0, 2 * PERIOD), st.integers(0, PERIOD))
def test_a_piece_is_the_same_wherever_it_is_cut_out(start: int, count: int, cut: int) -> None:
    cut = min(cut, count)
    whole = known_samples(start, count)
    parts = (known_samples(start, cut), known_samples(start + cut, count - cut))
    assert np.array_equal(whole, np.concatenate(parts))


@given(
    st.integers(1, 100_000),
    st.floats(1, 1000, allow_nan=False),
    st.sampled_from([8000, 11_025, 22_050, 24_000, 44_100, 48_000]),
)
def test_frames_cover_a_reply_without_gap(total: int, frame_ms: float, rate_hz: int) -> None:
    bounds = list(frame_bounds(total, frame_ms, rate_hz))
    assert bounds[0][0] == 0
    assert bounds[-1][1] == total
    assert all(earlier[1] == later[0] for earlier, later in pairwise(bounds))
    assert all(start < stop for start, stop in bounds)


@pytest.mark.parametrize(
    ("frame_ms", "rate_hz", "samples"), [(20, 24_000, 480), (98.5, 24_000, 2364), (10, 8000, 80)]
)
def test_a_frame_is_as_long_as_was_asked(frame_ms: float, rate_hz: int, samples: int) -> None:
    lengths = {stop - start for start, stop in frame_bounds(10 * samples, frame_ms, rate_hz)}
    assert lengths == {samples}
