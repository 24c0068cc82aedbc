"""Bounds learned from noisy histograms: tight, unhurt by where a feature lies, and never an error."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.cluster import KMeans

from huemeans import Accountant, Draws, PrivateKMeans
from huemeans.entropy import open_source
from huemeans.lattice import RADIUS
from huemeans.learned_bounds import (
    CELLS,
    Magnitudes,
    Places,
    counted,
    draws,
    learn_bounds,
    magnitude_bounds,
    narrowed,
    occupied,
)
from huemeans.mechanism import Mechanism
from huemeans.testing import seeded_noise


def learn(rows, mu=1.0):
    """Learn bounds with a budget of mu."""
    count = draws(rows.shape[1])
    door = Mechanism(
        Accountant(Fraction(mu) ** 2, Draws(count, Fraction(count, 2**39))), open_source(), "add-remove"
    )
    low, high = learn_bounds(rows, door, door.share(1_000_000))
    assert door.accountant.draws.count <= count
    return low, high


@pytest.mark.usefixtures("steady")
@pytest.mark.parametrize("shift", [0.0, 1000.0, -1000.0])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e5])
def test_bounds_are_tight_wherever_a_feature_lies(shift, scale):
    """Nearly every row lies inside, and the interval is at most three times the range of the rows."""
    rows = scale * (shift + np.random.default_rng(0).normal(size=(20_000, 2)).clip(-4, 4))
    low, high = learn(rows)
    inside = ((rows >= low) & (rows <= high)).mean()
    print("inside", inside, "width over range", (high - low) / np.ptp(rows, axis=0))
    assert inside > 0.99
    assert ((high - low) < 3 * np.ptp(rows, axis=0)).all()


@pytest.mark.parametrize(
    "rows",
    [
        np.empty((0, 3)),
        np.full((1, 3), np.nan),
        np.full((5, 3), np.inf),
        np.zeros((1000, 3)),
        np.full((10_000, 3), 7.25),
        np.array([[1e308, -1e308, 5e-324]] * 5000),
    ],
)
def test_no_content_raises_and_every_interval_has_width(rows):
    """Few, missing, infinite, equal or extreme rows give finite intervals of positive width."""
    low, high = learn(rows)
    assert np.isfinite([low, high]).all()
    assert (high > low).all()


def test_a_row_adds_one_to_one_bin_of_each_feature():
    """In units of RADIUS; missing values to none, infinities to the outermost."""
    rows = np.array([[0.0, -3.0, 1e300], [np.nan, np.inf, 1e-300]])
    cells = counted(rows, Places(np.arange(3), np.full(3, -1.0), np.full(3, 1.0), 3))
    for counts in (counted(rows, Magnitudes(3)), cells):
        assert (counts.sum(axis=1) / RADIUS).tolist() == [1, 2, 2]
        assert set(np.unique(counts)) <= {0, RADIUS, 2 * RADIUS}


def test_thin_rows_show_in_wide_blocks_only():
    """Counts below the noise of a bin but not of a block are found, empty bins beside a dense one are not."""
    thin = np.concatenate([np.zeros(128), np.full(64, 1.0), np.zeros(64)])
    assert not occupied(thin, 1.0, 1, 0.01).any()
    assert np.flatnonzero(occupied(thin, 1.0, 64, 0.01)).tolist() == list(range(128, 192))
    dense = np.zeros(256)
    dense[100] = 1e6
    assert np.flatnonzero(occupied(dense, 1.0, 64, 0.01)).tolist() == [100]


def test_noise_alone_is_rarely_taken_for_rows():
    """Of 500 empty histograms at most 25 show anything (5 expected by design; chance below 1e-9)."""
    rng = np.random.default_rng(0)
    assert sum(occupied(rng.normal(size=256), 1.0, 64, 0.01).any() for _ in range(500)) <= 25


def test_empty_histograms_give_the_unit_interval():
    """In at least 95 of 100 draws of noise for 20 features each; one in a hundred is a false alarm."""
    rng = np.random.default_rng(1)
    plain = 0
    for _ in range(100):
        low, high, far = magnitude_bounds(rng.normal(size=(20, 123)), 1.0)
        plain += bool((low == -1).all() and (high == 1).all() and not far.any())
    assert plain >= 95


def test_only_features_far_from_zero_are_far():
    """1000 to 1001 and -5 to -4 are, 0 to 1, -3 to 9 and 10 to 900 are not."""
    rows = np.linspace([1000, -5, 0, -3, 10], [1001, -4, 1, 9, 900], 4000)
    low, high, far = magnitude_bounds(counted(rows, Magnitudes(rows.shape[1])) / RADIUS, 1.0)
    assert far.tolist() == [True, True, False, False, False]
    assert (low <= rows.min(axis=0)).all()
    assert (high >= rows.max(axis=0)).all()


def test_a_cluster_in_a_tail_is_not_cut_off_a_feature_near_zero():
    """Two percent of the rows below the noise of the cells: bounds stay, but for a feature far from zero."""
    counts = np.zeros(CELLS)
    counts[2:6], counts[20:30] = 2400, 20
    assert narrowed(counts, 60.0, 0.0, 1.0, 0.01) == (0.0, 1.0)
    low, high = narrowed(counts, 60.0, 0.0, 1.0, 1.0)
    assert low <= 2 / CELLS < 6 / CELLS < high < 0.5


def test_private_bounds_cost_little_wherever_the_features_lie():
    """20,000 rows at epsilon 1: learned bounds raise the loss by under 2 %, at 0 to 1 and at 1000 to 1001."""
    rng = np.random.default_rng(3)
    for d in (2, 10):
        rows = rng.uniform(0.2, 0.8, size=(5, d))[rng.integers(5, size=20_000)]
        rows += 0.05 * rng.normal(size=rows.shape)
        base = KMeans(5, n_init=10, random_state=0).fit(rows).inertia_
        for shift in (0.0, 1000.0):
            with seeded_noise(4):
                model = PrivateKMeans(5, epsilon=1.0, random_state=0).fit(rows + shift)
            assert -model.score(rows + shift) < 1.02 * base
