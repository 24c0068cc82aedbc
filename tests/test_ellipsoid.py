"""The minimum-trace ellipsoid: by hand, by its certificate, by symmetry, by an independent solver."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from huemeans import InvalidArgument, min_trace_ellipsoid

CLOUDS = arrays(
    np.float64,
    st.tuples(st.integers(1, 25), st.integers(1, 5)),
    elements=st.floats(-10, 10).map(lambda x: round(x, 2)),
)


def quadratic_forms(points, covariance):
    """Return p' S^-1 p for each point, on the coordinates that are not all zero, scaled before solving."""
    used = points.any(axis=0)
    scale = np.sqrt(np.diag(covariance)[used])
    scaled = points[:, used] / scale
    solved = np.linalg.solve(covariance[np.ix_(used, used)] / np.outer(scale, scale), scaled.T)
    return np.einsum("ij,ji->i", scaled, solved)


def recomputed_gap(points, weights):
    """Return max g / s - 1 from the weights alone, as any reader of the result would."""
    moment = (points * weights[:, None]).T @ points
    values, vectors = np.linalg.eigh(moment)
    kept = values > 1e-14 * values[-1]
    deviation = np.sqrt(values[kept])
    g = ((points @ vectors[:, kept]) ** 2 / deviation).sum(axis=1)
    return g.max() / deviation.sum() - 1


def least_trace(points):
    """Return the optimum found by CVXPY with Clarabel, made feasible by scaling."""
    scale = np.abs(points).max()
    gamma = cp.Variable((points.shape[1],) * 2, PSD=True)
    inside = cp.sum(cp.multiply(points / scale @ gamma, points / scale), axis=1) <= 1
    cp.Problem(cp.Minimize(cp.tr_inv(gamma)), [inside]).solve(solver=cp.CLARABEL)
    worst = np.einsum("ij,jk,ik->i", points, gamma.value, points).max()
    return np.trace(np.linalg.inv(gamma.value)) * worst


def cloud(n, d, seed=0, spread=10):
    """Return correlated points whose features differ in size."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ (rng.normal(size=(d, d)) * np.geomspace(1, spread, d))


HAND = {
    "a box: diag(a) sum(a)": ([[3, 1], [3, -1], [-3, 1], [-3, -1]], [[12, 0], [0, 4]]),
    "one point: p p'": ([[1, 2, 3]], np.outer([1, 2, 3], [1, 2, 3])),
    "orthogonal points: each its own length": ([[2, 0], [0, 3]], [[4, 0], [0, 9]]),
    "a line: its end": ([[1, 2], [-3, -6], [2, 4]], [[9, 18], [18, 36]]),
    "inner points do not matter": ([[5, 0], [0, 5], [1, 1], [0.1, 0]], [[25, 0], [0, 25]]),
    "a coordinate that nobody has": ([[3, 0], [-1, 0]], [[9, 0], [0, 0]]),
    "nothing but zeros": ([[0, 0], [0, 0]], [[0, 0], [0, 0]]),
}


@pytest.mark.parametrize("name", HAND)
def test_worked_by_hand(name):
    """Small cases with a known answer."""
    points, covariance = HAND[name]
    found = min_trace_ellipsoid(points)
    np.testing.assert_allclose(np.array(covariance, float), found.covariance, atol=1e-6 * np.max(covariance))
    assert found.trace == pytest.approx(np.trace(covariance), rel=1e-8)


def test_the_golden_ratio():
    """For (1, 0) and (1, 1) the optimum is the golden ratio squared, not what the closed form gives."""
    found = min_trace_ellipsoid([[1, 0], [1, 1]])
    assert found.trace == pytest.approx(((1 + np.sqrt(5)) / 2) ** 2, rel=1e-8)
    np.testing.assert_allclose([0.2764, 0.7236], found.weights, atol=1e-4)


def test_the_outermost_points_are_tight_and_not_the_smallest():
    """In one dimension 1 is tight and 0.1 is not; in many the weight lies far from the smallest points."""
    np.testing.assert_array_equal([0, 1], min_trace_ellipsoid([[0.1], [1]]).weights)
    points = cloud(500, 6)
    found = min_trace_ellipsoid(points)
    tight = quadratic_forms(points, found.covariance) > 1 - 1e-6
    assert found.weights[tight].sum() > 1 - 1e-6
    smallest = np.argsort(np.linalg.norm(points, axis=1))[:6]
    assert found.weights[smallest].sum() == 0
    assert not tight[smallest].any()


ODD = {
    "gaussian": lambda rng: rng.normal(size=(400, 7)),
    "heavy tails": lambda rng: rng.standard_t(1.5, size=(400, 7)),
    "integers": lambda rng: rng.integers(-2, 3, size=(400, 7)).astype(float),
    "repeated": lambda rng: np.repeat(rng.normal(size=(9, 4)), 30, axis=0),
    "rank 3 of 7": lambda rng: rng.normal(size=(200, 3)) @ rng.normal(size=(3, 7)),
    "collinear": lambda rng: np.outer(rng.normal(size=50), [1, -2, 3]),
    "fewer points than dimensions": lambda rng: rng.normal(size=(3, 9)),
    "one huge outlier": lambda rng: np.vstack([rng.normal(size=(99, 5)), np.full((1, 5), 1e6)]),
    "scales 1e-9 to 1e9": lambda rng: rng.normal(size=(300, 7)) * np.logspace(-9, 9, 7),
    "tiny": lambda rng: 1e-9 * rng.normal(size=(100, 3)),
    "huge": lambda rng: 1e9 * rng.normal(size=(100, 3)),
    "repeated column": lambda rng: np.repeat(rng.normal(size=(100, 2)), 2, axis=1),
    "zero column": lambda rng: np.column_stack([rng.normal(size=(100, 2)), np.zeros(100)]),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_point_lies_inside_and_the_gap_is_certified(name, seed):
    """Feasible to 1e-12, gap below 1e-8, weights a distribution, whatever the points look like."""
    points = ODD[name](np.random.default_rng(seed))
    found = min_trace_ellipsoid(points)
    assert quadratic_forms(points, found.covariance).max() <= 1 + 1e-12
    assert found.gap <= 1e-8
    assert found.weights.sum() == pytest.approx(1, abs=1e-12)
    assert found.weights.min() >= 0
    assert found.trace == pytest.approx(np.trace(found.covariance), rel=1e-12)


@pytest.mark.parametrize("name", [name for name in ODD if "scales" not in name])
def test_the_gap_can_be_recomputed_from_the_weights(name):
    """A reader with points and weights finds the same certificate."""
    points = ODD[name](np.random.default_rng(5))
    found = min_trace_ellipsoid(points)
    assert recomputed_gap(points, found.weights) == pytest.approx(found.gap, abs=1e-9)


def test_the_certificate_notices_bad_weights():
    """Control: equal weights are far from optimal, and the gap says so."""
    points = cloud(200, 5)
    assert recomputed_gap(points, np.full(200, 1 / 200)) > 0.1


@given(CLOUDS)
def test_any_small_cloud_is_solved(points):
    """Hypothesis looks for clouds that are not covered or not optimal."""
    found = min_trace_ellipsoid(points)
    assert found.gap <= 1e-8
    if points.any():
        assert quadratic_forms(points, found.covariance).max() <= 1 + 1e-12


@given(st.integers(0, 1000), st.floats(-6, 6).map(lambda x: 10**x))
def test_the_optimum_moves_with_rotation_scale_permutation_and_repetition(seed, factor):
    """S(QP) = Q S(P) Q', S(cP) = c^2 S(P), and order, signs and repetitions do not matter."""
    rng = np.random.default_rng(seed)
    points = cloud(60, 4, seed)
    base = min_trace_ellipsoid(points)
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    turned = min_trace_ellipsoid(factor * points @ turn.T)
    scale = 1e-3 * base.trace
    np.testing.assert_allclose(turn @ base.covariance @ turn.T, turned.covariance / factor**2, atol=scale)
    assert turned.trace == pytest.approx(factor**2 * base.trace, rel=2e-8)
    signs = rng.choice([-1, 1], size=(60, 1))
    shuffled = np.repeat(rng.permutation(points * signs), 2, axis=0)
    assert min_trace_ellipsoid(shuffled).trace == pytest.approx(base.trace, rel=2e-8)


@pytest.mark.parametrize(("n", "d"), [(5, 2), (40, 3), (60, 5), (80, 8)])
def test_an_independent_solver_finds_the_same_optimum(n, d):
    """CVXPY with Clarabel agrees to 1e-6."""
    points = cloud(n, d, seed=n)
    assert min_trace_ellipsoid(points).trace == pytest.approx(least_trace(points), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "d"), [(437, 24), (200, 16)])
def test_an_independent_solver_finds_the_same_optimum_in_many_dimensions(n, d):
    """The same at the largest sizes that the generic solver finishes."""
    points = cloud(n, d, seed=n)
    assert min_trace_ellipsoid(points).trace == pytest.approx(least_trace(points), rel=1e-6)


def test_a_metric_minimizes_the_weighted_trace():
    """With W the optimum is that of W^(1/2) p, taken back; features that matter more get less noise."""
    points = cloud(100, 4)
    root = np.diag([3.0, 1.0, 0.5, 2.0]) @ np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    metric = root.T @ root
    plain = min_trace_ellipsoid(points @ root.T)
    weighted = min_trace_ellipsoid(points, metric=metric)
    assert weighted.trace == pytest.approx(plain.trace, rel=2e-8)
    assert weighted.trace == pytest.approx(np.trace(metric @ weighted.covariance), rel=1e-10)
    assert quadratic_forms(points, weighted.covariance).max() <= 1 + 1e-12
    np.testing.assert_allclose(plain.covariance, root @ weighted.covariance @ root.T, atol=1e-3 * plain.trace)
    caring = min_trace_ellipsoid(points, metric=np.diag([100.0, 1, 1, 1])).covariance
    assert caring[0, 0] < min_trace_ellipsoid(points).covariance[0, 0]


def test_a_metric_may_ignore_features():
    """A feature of weight zero costs nothing; the others are as if it were not there."""
    points = cloud(200, 4)
    found = min_trace_ellipsoid(points, metric=np.diag([1.0, 1, 0, 0]))
    assert found.gap < 1e-7
    assert found.trace == pytest.approx(min_trace_ellipsoid(points[:, :2]).trace, rel=1e-6)
    assert quadratic_forms(points, found.covariance).max() <= 1 + 1e-12


def test_a_looser_tolerance_takes_no_more_scans():
    """Tol is read: 1e-2 is reached with fewer scans than 1e-10."""
    points = cloud(20_000, 10)
    loose, tight = min_trace_ellipsoid(points, tol=1e-2), min_trace_ellipsoid(points, tol=1e-10)
    assert loose.gap <= 1e-2
    assert tight.gap <= 1e-10
    assert loose.scans < tight.scans <= 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"points": np.zeros((0, 3))}, r"^points=<no points>"),
        ({"points": [1.0, 2.0]}, r"^points=<array in 1 dimensions> .* shape \(n, d\)"),
        ({"points": [[123.25, np.nan]]}, r"^points=<array with NaN or infinity>"),
        ({"points": [["a"]]}, r"^points=<array of text>"),
        ({"points": [[1.0]], "tol": 0}, r"^tol=0 "),
        ({"points": [[1.0]], "tol": float("nan")}, r"^tol=nan "),
        ({"points": [[1.0, 2.0]], "metric": [[1.0]]}, r"^metric=<array of shape \(1, 1\)> .* \(2, 2\)"),
        ({"points": [[1.0, 2.0]], "metric": [[1, 2], [0, 1]]}, r"^metric=.* symmetric"),
        ({"points": [[1.0, 2.0]], "metric": [[-1, 0], [0, 1]]}, r"^metric=.* negative eigenvalues"),
        ({"points": [[1.0, 2.0]], "metric": np.zeros((2, 2))}, r"^metric=<zero on every point>"),
        ({"points": np.ones((2, 3)), "metric": 2 * np.eye(3) - np.ones((3, 3))}, "negative eigenvalues"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    """Each message names the argument, what was expected and what to do; no point is quoted."""
    with pytest.raises(InvalidArgument, match=message) as caught:
        min_trace_ellipsoid(**arguments)
    assert "123" not in str(caught.value)


@pytest.mark.parametrize("power", [0, 3, 6, 9])
def test_features_of_any_unit_meet_weights_of_any_size(power):
    """Columns scaled apart, with the metric that undoes it, are as good as never scaled."""
    points = cloud(50, 3, seed=7)
    scale = 10.0 ** np.array([power, 0, -power])
    found = min_trace_ellipsoid(points * scale, metric=np.diag(scale**-2.0))
    assert found.gap <= 1e-8
    assert found.trace == pytest.approx(min_trace_ellipsoid(points).trace, rel=2e-8)


@pytest.mark.parametrize("size", [1e-140, 1e140])
def test_points_of_extreme_size_are_solved(size):
    """Squares that would overflow are never taken."""
    points = cloud(50, 3)
    found = min_trace_ellipsoid(points * size)
    assert found.trace / size**2 == pytest.approx(min_trace_ellipsoid(points).trace, rel=2e-8)
