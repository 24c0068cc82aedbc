"""Confidence sets that cover at their level, and figures that say when they are not known."""

import numpy as np
import pytest

from huemeans.uncertainty import ConfidenceSet, label_draws, ratio_covariance, separation_p_values

COVARIANCE = np.array([[900.0, 200.0], [200.0, 400.0]])


def coverage(level, inflation=1.0, count=200.0, tau=20.0):
    """Return how often the set of a noisy sum over a noisy count holds the true mean offset."""
    rng = np.random.default_rng(1)
    offset, reference, held = np.array([3.0, 0.0]), np.array([100.0, -5.0]), 0
    for _ in range(4000):
        noisy_count = count + tau * rng.normal()
        noisy_sum = count * offset + rng.multivariate_normal([0, 0], COVARIANCE)
        found = ConfidenceSet(
            reference, noisy_sum, noisy_count, inflation * COVARIANCE, inflation * tau**2, level
        )
        held += bool(found.contains(reference + offset)[0])
    return held / 4000


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_the_sets_cover_at_their_level(level):
    """Within 4.9 standard errors (false alarm 1e-6), and half the covariance is rejected."""
    error = 4.9 * np.sqrt(level * (1 - level) / 4000)
    assert abs(coverage(level) - level) < error
    assert abs(coverage(level, inflation=0.5) - level) > error


def test_ignoring_the_noise_of_the_count_would_not_cover():
    """Control: the published formula S / n^2 alone covers 67 % where 95 % were promised."""
    assert coverage(0.95, count=200.0, tau=20.0) > 0.93
    rng = np.random.default_rng(2)
    inside = 0
    for _ in range(2000):
        count = 200 + 20 * rng.normal()
        apart = (600 * np.array([1, 0]) + rng.multivariate_normal([0, 0], COVARIANCE)) / count - [3, 0]
        inside += apart @ np.linalg.solve(COVARIANCE / count**2, apart) < 5.99
    assert inside / 2000 < 0.8


def test_a_count_that_may_be_zero_gives_an_unbounded_set_that_says_so():
    """Two deviations of the count are not enough for an ellipsoid at 95 % in two dimensions."""
    known = ConfidenceSet(np.zeros(2), np.ones(2), 200.0, COVARIANCE, 400.0, 0.95)
    unknown = ConfidenceSet(np.zeros(2), np.ones(2), 40.0, COVARIANCE, 400.0, 0.95)
    assert known.bounded
    assert not unknown.bounded


def test_the_ratio_covariance_has_the_noise_of_the_count_in_it():
    """(S + t^2 o o') / n^2, and NaN where n is below four deviations."""
    sums, counts = np.array([[600.0, 0.0], [600.0, 0.0]]), np.array([200.0, 79.0])
    found = ratio_covariance(sums, counts, COVARIANCE, 400.0)
    np.testing.assert_allclose((COVARIANCE + 400 * np.diag([9.0, 0.0])) / 200**2, found[0])
    assert np.isnan(found[1]).all()


def test_separation_tells_clusters_apart_from_noise():
    """Equal centroids have p-values that are uniform; distant ones vanish; unknown ones are NaN."""
    rng = np.random.default_rng(3)
    covariances = np.array([COVARIANCE, COVARIANCE, np.full((2, 2), np.nan)])
    p_values = []
    for _ in range(1000):
        noise = rng.multivariate_normal([0, 0], COVARIANCE, size=3)
        p_values.append(separation_p_values(noise, covariances)[0, 1])
    assert abs(np.mean(np.array(p_values) < 0.1) - 0.1) < 0.05
    apart = separation_p_values(np.array([[0, 0], [1e3, 0], [0, 0.0]]), covariances)
    assert apart[0, 1] < 1e-12
    assert np.isnan(apart[0, 2])


def test_drawn_centroids_have_the_covariance_of_the_noise():
    """Unknown ones stay where they are."""
    covariances = np.array([COVARIANCE, np.full((2, 2), np.nan)])
    drawn = label_draws(np.ones((2, 2)), covariances, 20_000, np.random.default_rng(4))
    np.testing.assert_allclose(COVARIANCE, np.cov(drawn[:, 0].T), rtol=0.1, atol=15)
    assert (drawn[:, 1] == 1).all()
