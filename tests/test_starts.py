"""Starts on public points: the best of a few clusters, and no content of the points or weights raises."""

import numpy as np
import pytest

from huemeans.starts import best_centers, with_useless_moved


def pairs(rng):
    """Return 400 points in four far-apart round clusters, two of them near each other."""
    return np.repeat([[0, 0], [10, 0], [40, 0], [41, 8]], 100, axis=0) + 0.1 * rng.normal(size=(400, 2))


def test_no_start_is_stuck():
    """Whatever the seed, each of four clusters gets its centroid."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        centers = best_centers(rng.permutation(pairs(rng)), 4, rng)
        np.testing.assert_allclose(np.sort(centers[:, 0]), [0, 10, 40, 41], atol=0.2)


def test_a_useless_centroid_splits_what_another_serves_alone():
    """Points that weigh nothing hold no centroid; those that weigh something do."""
    rng = np.random.default_rng(0)
    points = np.vstack([pairs(rng), np.full((20, 2), 500.0)])
    centers = np.array([[5.0, 0.0], [40, 0], [41, 8], [500, 500]])
    weights = np.append(np.ones(400), np.zeros(20))
    moved = with_useless_moved(points, weights, centers, rng)
    np.testing.assert_allclose(np.sort(moved[:, 0]), [0, 10, 40, 41], atol=0.2)
    np.testing.assert_array_equal(with_useless_moved(points, np.ones(420), centers, rng)[3], [500, 500])


@pytest.mark.parametrize("weight", [0.0, 1.0, 1e-300])
@pytest.mark.parametrize(
    "points", [np.zeros((5, 2)), np.eye(2), np.ones((1, 2)), np.array([[0, 0], [9, 9.0]])]
)
def test_few_or_equal_points_and_weights_of_nothing_are_answered(points, weight):
    """Clusters of one point, of equal points, of no weight are not split."""
    centers = np.array([[0.5, 0.5], [7.0, 7.0], [-3.0, 2.0]])
    moved = with_useless_moved(points, np.full(len(points), weight), centers, np.random.default_rng(0))
    assert moved.shape == (3, 2)
    assert np.isfinite(moved).all()
