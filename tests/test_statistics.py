"""The statistics of comparisons, held against scipy, against counting, and against chance."""

from __future__ import annotations

import math
from itertools import combinations
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import reports.compare.statistics
from reports.compare.statistics import (
    ALPHA,
    COUNTED_TO,
    difference,
    holm,
    interval,
    least_p,
    p_value,
    runs_to_decide,
)

BLOCKS = st.sampled_from([0.0, 10.0, 20.0, 30.0, 200.0])
"""What figures are like: in blocks of 10 ms, so that they often repeat."""
TWO_OR_MORE = st.lists(BLOCKS, min_size=2, max_size=6)
ANY = st.lists(st.floats(0, 1000).map(lambda value: round(value, 3)), min_size=1, max_size=7)


def rank_sum(first: np.ndarray, second: np.ndarray, axis: int = -1) -> np.ndarray:
    ranks = stats.rankdata(np.concatenate([first, second], axis=axis), axis=axis)
    return ranks[..., : first.shape[-1]].sum(axis=-1)


# --- The test ------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(TWO_OR_MORE, TWO_OR_MORE)
def test_p_is_that_of_scipys_exact_permutation_test_also_with_ties(
    first: list[float], second: list[float]
) -> None:
    expected = stats.permutation_test(
        (first, second), rank_sum, vectorized=True, n_resamples=np.inf, alternative="two-sided"
    )
    assert p_value(first, second) == pytest.approx(expected.pvalue, rel=1e-9)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=14, unique=True), st.data())
def test_p_is_that_of_scipys_exact_rank_test_where_nothing_ties(
    values: list[int], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(1, len(values) - 1))
    expected = stats.mannwhitneyu(values[:cut], values[cut:], method="exact")
    assert p_value(values[:cut], values[cut:]) == pytest.approx(expected.pvalue, rel=1e-9)


def test_p_counts_every_way_the_runs_could_have_been_dealt() -> None:
    first, second = [0.0, 0.0, 10.0], [10.0, 10.0, 30.0, 40.0]
    pooled = [*first, *second]
    ranks = stats.rankdata(pooled)
    sums = [sum(ranks[list(dealt)]) for dealt in combinations(range(7), 3)]
    observed = sum(ranks[:3])
    below = sum(total <= observed for total in sums) / len(sums)
    above = sum(total >= observed for total in sums) / len(sums)
    assert p_value(first, second) == pytest.approx(2 * min(below, above))


@pytest.mark.parametrize("sizes", [(60, 60), (40, 70)])
def test_counting_and_the_approximation_agree_where_one_takes_over(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    first = rng.normal(0, 30, sizes[0]).round(-1).tolist()
    second = rng.normal(8, 30, sizes[1]).round(-1).tolist()
    assert len(first) + len(second) <= COUNTED_TO
    expected = stats.mannwhitneyu(first, second, method="asymptotic").pvalue
    assert p_value(first, second) == pytest.approx(expected, abs=0.002)


def test_beyond_what_is_counted_p_is_scipys_approximation() -> None:
    rng = np.random.default_rng(4)
    first = rng.normal(0, 30, COUNTED_TO).round(-1).tolist()
    second = rng.normal(5, 30, 90).round(-1).tolist()
    expected = stats.mannwhitneyu(first, second, method="asymptotic").pvalue
    assert p_value(first, second) == pytest.approx(expected, rel=1e-9)
    assert p_value([1.0] * COUNTED_TO, [1.0]) == 1.0


@given(ANY, ANY)
def test_p_is_a_chance_and_does_not_depend_on_who_is_first(
    first: list[float], second: list[float]
) -> None:
    p = p_value(first, second)
    assert least_p(len(first), len(second)) * (1 - 1e-9) <= p <= 1
    assert p == pytest.approx(p_value(second, first))


def test_an_empty_group_is_refused() -> None:
    with pytest.raises(ValueError, match="expected values in both groups"):
        p_value([], [1.0])


@pytest.mark.parametrize("values", [[0.0, 10, 10, 20, 30, 30], [0.0, 0, 0, 0, 0, 10]])
def test_under_chance_alone_p_is_below_a_level_no_oftener_than_the_level_says(
    values: list[float],
) -> None:
    dealt = list(combinations(range(6), 3))
    p_values = [
        p_value([values[i] for i in chosen], [values[i] for i in range(6) if i not in chosen])
        for chosen in dealt
    ]
    for level in (0.1, 0.2, 0.4, 0.5, 1.0):
        assert sum(p <= level + 1e-12 for p in p_values) <= level * len(dealt) + 1e-9


# --- Difference and interval ---------------------------------------------------------------------


@given(ANY, ANY)
def test_the_difference_is_the_median_over_all_pairs_and_lies_in_its_interval(
    first: list[float], second: list[float]
) -> None:
    apart = [b - a for a in first for b in second]
    assert difference(first, second) == pytest.approx(median(apart), abs=1e-5)
    within = interval(first, second, 0.8)
    if within is not None:
        assert within.low <= difference(first, second) <= within.high
        assert within.level >= 0.8 - 1e-12


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.99])
def test_the_interval_holds_the_shifts_that_the_test_does_not_rule_out(
    seed: int, level: float
) -> None:
    # No two differences of these are less than the step below apart.
    rng = np.random.default_rng(seed)
    first, second = (rng.integers(0, 10**9, size).tolist() for size in (4, 4 + seed % 3))
    within = interval(first, second, level)
    if within is None:
        assert least_p(len(first), len(second)) > 1 - level
        return

    def ruled_out(shift: float) -> bool:
        return p_value(first, [value - shift for value in second]) <= 1 - level + 1e-12

    assert ruled_out(within.low - 0.25)
    assert ruled_out(within.high + 0.25)
    assert not ruled_out(within.low + 0.25)
    assert not ruled_out(within.high - 0.25)


def test_intervals_are_those_of_the_tables() -> None:
    five = [1.0, 2.0, 3.0, 4.0, 5.0]
    within = interval(five, [value + 10 for value in five])
    assert within is not None
    # Of 25 differences the third from either end: 1 - 2 * 4/252.
    assert (within.low, within.high) == (7, 13)
    assert within.level == pytest.approx(1 - 8 / 252)
    assert interval(five[:3], five[:3]) is None
    assert interval(five[:4], five[:4]) is not None


def test_the_interval_covers_a_shift_as_often_as_it_says_also_in_blocks() -> None:
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(1000):
        first = rng.normal(100, 12, 5).round(-1).tolist()
        second = (rng.normal(100, 12, 5).round(-1) + 30).tolist()
        within = interval(first, second)
        assert within is not None
        held += within.low <= 30 <= within.high
    assert held / 1000 >= 0.95


def test_beyond_what_is_counted_the_interval_goes_on_smoothly() -> None:
    few = [float(value) for value in range(COUNTED_TO // 2)]
    many = [float(value) for value in range(COUNTED_TO // 2 + 1)]
    counted, approximated = interval(few, few), interval(many, many)
    assert counted is not None
    assert approximated is not None
    assert approximated.high == pytest.approx(counted.high, abs=1)
    assert approximated.low == -approximated.high


# --- Several at once -----------------------------------------------------------------------------


def test_holm_multiplies_the_smallest_by_all_and_never_orders_them_anew() -> None:
    assert [one.p for one in holm([0.01, 0.04, 0.03])] == pytest.approx([0.03, 0.06, 0.06])
    assert [one.p for one in holm([0.6, 0.7])] == [1.0, 1.0]
    assert holm([]) == []
    # Of thousands of runs the approximation can come to nothing at all.
    assert [(one.p, one.times) for one in holm([0.0, 0.0])] == [(0.0, 2.0), (0.0, 1.0)]


@settings(deadline=None)
@given(st.lists(st.tuples(TWO_OR_MORE, TWO_OR_MORE), min_size=1, max_size=5))
def test_an_interval_at_the_level_of_its_corrected_test_holds_zero_where_it_does_not_decide(
    groups: list[tuple[list[float], list[float]]],
) -> None:
    for corrected, (first, second) in zip(
        holm([p_value(*pair) for pair in groups]), groups, strict=True
    ):
        within = interval(first, second, 1 - ALPHA / corrected.times)
        if within is not None and corrected.p > ALPHA + 1e-9:
            assert within.low <= 0 <= within.high


def test_chance_alone_makes_one_in_twenty_families_differ_at_most() -> None:
    rng = np.random.default_rng(6)
    wrong = 0
    for _ in range(800):
        runs = rng.normal(100, 15, (10, 4)).round(-1)
        runs[:, 1] = runs[:, 0]
        tested = [p_value(runs[:5, j].tolist(), runs[5:, j].tolist()) for j in range(4)]
        wrong += any(one.p <= ALPHA for one in holm(tested))
    assert wrong / 800 <= ALPHA


# --- How many runs -------------------------------------------------------------------------------


@pytest.mark.parametrize("tests", range(1, 13))
def test_so_many_runs_decide_and_one_fewer_does_not(tests: int) -> None:
    runs = runs_to_decide(tests)

    def smallest(count: int) -> float:
        low, high = [float(v) for v in range(count)], [float(v) + 1000 for v in range(count)]
        return holm([p_value(low, high)] * tests)[0].p

    assert smallest(runs) <= ALPHA < smallest(runs - 1)


def test_three_against_three_never_decide_and_five_decide_six_figures() -> None:
    assert least_p(3, 3) == pytest.approx(2 / math.comb(6, 3))
    assert least_p(3, 3) > ALPHA
    assert runs_to_decide(1) == 4
    assert runs_to_decide(6) == 5
    assert runs_to_decide(7) == 6


@pytest.mark.parametrize(("often", "seldom"), [(1, 0), (4, 0), (9, 2), (30, 41)])
def test_of_many_runs_that_seldom_differ_p_is_counted_and_not_approximated(
    often: int, seldom: int
) -> None:
    first = [10.0] * often + [0.0] * (200 - often)
    second = [10.0] * seldom + [0.0] * (250 - seldom)
    of_ten = stats.hypergeom(450, often + seldom, 200)
    expected = 2 * min(of_ten.cdf(often), of_ten.sf(often - 1))
    assert p_value(first, second) == pytest.approx(min(1.0, expected), rel=1e-9)
    assert p_value(second, first) == pytest.approx(min(1.0, expected), rel=1e-9)


def test_counted_by_kinds_p_is_the_same_as_counted_by_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(7)
    for _ in range(40):
        kinds, size = rng.integers(1, 6), rng.integers(1, 12)
        first = (rng.integers(0, kinds, size) * 10.0).tolist()
        second = (rng.integers(0, kinds, 12) * 10.0 + rng.choice([0, 10])).tolist()
        counted = p_value(first, second)
        with monkeypatch.context() as patch:
            patch.setattr(reports.compare.statistics, "COUNTED_TO", 0)
            patch.setattr(reports.compare.statistics, "_approximate", None)
            assert p_value(first, second) == pytest.approx(counted, rel=1e-9)
