"""The minimum-trace ellipsoid around a set of points, with a certificate that anyone can recompute.

Among all covariances S with p' S^-1 p <= 1 for every point p, find the one of least trace: the color of the
cheapest Gaussian noise that hides every p.  The dual is Kiefer's Phi_(1/2)-optimal design: weights w >= 0
that sum to one, R = sum w_i p_i p_i', maximize s = tr R^(1/2).  With g_i = p_i' R^(-1/2) p_i, *any* weights
give a feasible S = R^(1/2) max g and the lower bound s^2 on the least trace, so

    gap = max g / s - 1

certifies the result, whoever computed the weights.  At the optimum g_i = s wherever w_i > 0.

The dual is solved on a small active set by a primal-dual interior point method; all points are then scanned
for violators, which join the set.  After a scan, points that cannot violate are skipped by an exact bound:
g_i changes by at most the largest eigenvalue of one ellipsoid against the other.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from huemeans import checks

Floats = NDArray[np.float64]

_CHUNK: Final = 16384
_MOST_SCANS: Final = 100
_MOST_STEPS: Final = 60
_FLOOR: Final = 1e-13
_EPS: Final = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """A covariance whose unit ellipsoid holds every point, and the proof that its trace is nearly least."""

    covariance: Floats
    """The covariance S, shape (d, d): p' S^-1 p <= 1 for every point, rounding of S included."""

    trace: float
    """tr(metric S), which is tr(S) without a metric."""

    gap: float
    """How far the trace can be above the least possible, relatively: max g / s - 1."""

    weights: Floats
    """The dual weights, shape (n,): mostly zeros, sum one."""

    scans: int
    """How many times points were scanned for violators."""


def min_trace_ellipsoid(
    points: ArrayLike, *, tol: float = 1e-8, metric: ArrayLike | None = None
) -> Ellipsoid:
    """Find the origin-centered ellipsoid of least trace around ``points``.

    Parameters
    ----------
    points : array-like of shape (n, d)
        Any finite points: rank-deficient, repeated, collinear and badly scaled ones included.
    tol : float
        The relative gap to reach.
    metric : array-like of shape (d, d), optional
        Positive semidefinite W: minimize tr(W S) instead of tr(S), for features that matter unequally.
        A direction that W gives no weight gets much noise, though not infinitely much.

    Returns
    -------
    Ellipsoid

    Notes
    -----
    Only a coordinate in which every point is exactly zero is left without noise.  A direction that is
    numerically empty keeps noise of about 1e-13 times the size of the points, which costs nothing.
    Feasibility does not rest on the solver: the scale is set by the worst point, and the rounding of S and
    of the scan is covered by an addition of a few units in the last place.

    Examples
    --------
    >>> box = np.array([[3.0, 1.0], [3.0, -1.0], [-3.0, 1.0], [-3.0, -1.0]])
    >>> ellipsoid = min_trace_ellipsoid(box)
    >>> np.round(ellipsoid.covariance, 6).tolist()  # a box of half-widths a: diag(a) * sum(a)
    [[12.0, 0.0], [0.0, 4.0]]
    >>> round(ellipsoid.trace, 6), ellipsoid.gap < 1e-8
    (16.0, True)
    """
    array, reach = _points(points)
    checks.number(
        "tol", tol, above=0, expected="a number above 0", remedy="Choose 1e-8, or more to be faster"
    )
    used = reach > 0
    covariance = np.zeros((len(used), len(used)))
    weights = np.zeros(len(array))
    if not used.any():
        weights[0] = 1.0
        return Ellipsoid(covariance, 0.0, 0.0, weights, 0)
    size = 2.0 ** np.round(np.log2(reach.max() if metric is None else reach[used]))
    inner = array if used.all() else array[:, used]
    inner /= size
    exact_root, root, inverse_root = _metric_roots(metric, used, size, tol)
    scale = float(np.linalg.norm(reach[used] / size @ np.abs(root)))
    solver = _Dual(inner, root / scale, tol)
    support, mass = solver.solve()
    weights[support] = mass
    shape = inverse_root @ _square_root(inner[support] @ root, mass) @ inverse_root
    block = _around(inner, shape)
    trace = float(np.trace(exact_root @ block @ exact_root))
    bound = float(_deviations(inner[support] @ exact_root, mass)[0].sum())
    covariance[np.ix_(used, used)] = block * size * np.reshape(size, (-1, 1))
    trace *= float(size) ** 2 if metric is None else 1.0
    bound *= float(size) if metric is None else 1.0
    gap = max(0.0, trace / bound**2 - 1) if bound > 0 else 0.0
    return Ellipsoid(covariance, trace, float(gap), weights, solver.scans + 1)


class _Dual:
    """Maximize tr (sum w_i z_i z_i')^(1/2) over the simplex, z = points @ root, by active sets."""

    def __init__(self, points: Floats, root: Floats, tol: float) -> None:
        self.points, self.root, self.tol = points, root, tol
        self.scans = 0
        self.reference: Floats | None = None
        self.reference_g = np.empty(0)

    def solve(self) -> tuple[NDArray[np.intp], Floats]:
        n, d = self.points.shape
        batch = 5 * d + 10
        active = self._first(batch) if n > 2 * batch else np.arange(n)
        lam, slack = np.full(len(active), 1.0 / len(active)), np.full(len(active), 0.5)
        gap, goal, dropping = np.inf, 0.005, True
        while True:
            goal = max(self.tol / 4, min(goal, gap / 200))
            z = self.points[active] @ self.root
            lam, slack = _interior_point(z, lam, slack, goal)
            deviation, vectors = _deviations(z, lam)
            s = float(deviation.sum())
            whiten = self.root @ (vectors.T / np.sqrt(_floored(deviation)))
            worst, violators = self._violators(whiten, s, max(batch, d * (d + 1) // 2))
            before, gap = gap, worst / s - 1
            fresh = np.setdiff1d(violators, active)
            if gap <= self.tol / 2 or (not fresh.size and goal == self.tol / 4) or self.scans >= _MOST_SCANS:
                return active, lam / lam.sum()
            if not fresh.size:
                goal /= 100
            dropping &= gap < before  # a row that was missed once may be missed again: then keep all
            near = (slack < 2 * gap) | (lam >= slack) | (not dropping)
            active = np.concatenate([active[near], fresh])
            level = float(lam @ slack) / len(lam)
            slack = np.concatenate([slack[near], np.full(fresh.size, max(gap, level**0.5))])
            lam = np.concatenate([lam[near], np.full(fresh.size, level**0.5)])

    def _first(self, size: int) -> NDArray[np.intp]:
        """Start from the points that stick out of the ellipsoid of all points with equal weights."""
        moment = (self.points.T @ self.points) / len(self.points)
        values, vectors = np.linalg.eigh(self.root @ moment @ self.root)
        deviation = np.sqrt(np.maximum(values, values[-1] * 1e-20))
        _, violators = self._violators(self.root @ (vectors / np.sqrt(deviation)), 0.0, size)
        return violators

    def _violators(self, whiten: Floats, s: float, most: int) -> tuple[float, NDArray[np.intp]]:
        """Return the largest g and up to ``most`` points with g > s, largest first."""
        self.scans += 1
        g, rows = self._scan(whiten, s)
        order = np.argpartition(-g, min(most, len(g) - 1))[:most]
        order = order[np.argsort(-g[order])]
        order = order[g[order] > s]
        return max(s, float(g.max(initial=0.0))), order if rows is None else rows[order]

    def _scan(self, whiten: Floats, s: float) -> tuple[Floats, NDArray[np.intp] | None]:
        """Return g for all points, or for those that the last full scan could not rule out, and which."""
        if self.reference is not None:
            growth = np.linalg.norm(np.linalg.solve(self.reference, whiten), 2) ** 2
            suspects = np.flatnonzero(self.reference_g * growth * (1 + 1e-9) >= s)
            if suspects.size < len(self.points) / 4:
                return squared_lengths(self.points[suspects], whiten), suspects
        self.reference, self.reference_g = whiten, squared_lengths(self.points, whiten)
        return self.reference_g, None


def squared_lengths(points: Floats, matrix: Floats) -> Floats:
    """Return ||matrix' p||^2 for every point, in chunks that stay in the cache."""
    result = np.empty(len(points))
    for start in range(0, len(points), _CHUNK):
        image = points[start : start + _CHUNK] @ matrix
        result[start : start + _CHUNK] = np.einsum("ij,ij->i", image, image)
    return result


def _deviations(z: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """Return the eigenvalues of R^(1/2) and the eigenvectors as rows, R = sum w_i z_i z_i'.

    They are the singular values of the weighted points: R itself would lose the small ones.
    """
    weighted = z * np.sqrt(mass / mass.sum())[:, None]
    triangle = np.linalg.qr(weighted, mode="r") if len(z) > z.shape[1] else weighted
    _, found, vectors = np.linalg.svd(triangle, full_matrices=True)
    deviation = np.zeros(z.shape[1])
    deviation[: len(found)] = found
    return deviation, vectors


def _floored(deviation: Floats) -> Floats:
    """Keep noise in directions that are numerically empty: about 1e-13 of the trace in all."""
    return np.asarray(np.hypot(deviation, _FLOOR * deviation.sum() / len(deviation)))


def _square_root(z: Floats, mass: Floats) -> Floats:
    deviation, vectors = _deviations(z, mass)
    return (vectors.T * _floored(deviation)) @ vectors


def _around(points: Floats, shape: Floats) -> Floats:
    """Scale ``shape`` so that every point lies inside, whatever was rounded on the way.

    The quadratic forms computed here are those of a shape that differs from the stored one by no more than
    4 d^2 units in the last place of its diagonal (Cholesky factor and solve are backward stable).  That much
    is added to the diagonal twice: before, so that the rounding of the shape itself cannot cut a point off,
    and after, so that p' S^-1 p <= 1 holds in exact arithmetic.
    """
    slack = 1 + 4 * len(shape) ** 2 * _EPS
    covariance = (shape + shape.T) / 2
    covariance[np.diag_indices_from(covariance)] *= slack
    deviation = np.sqrt(np.diag(covariance))
    factor = np.linalg.cholesky(covariance / deviation / deviation[:, None])
    whiten = np.linalg.solve(factor, np.diag(1 / deviation)).T
    covariance *= squared_lengths(points, whiten).max()
    covariance[np.diag_indices_from(covariance)] *= slack
    return np.asarray(covariance)


def _metric_roots(
    metric: ArrayLike | None, used: NDArray[np.bool_], size: Floats, tol: float
) -> tuple[Floats, Floats, Floats]:
    """Return (D W D)^(1/2) on the used coordinates, an invertible version of it, and that one's inverse.

    D = diag(size) is what columns were divided by, so that features of any unit meet weights of any size.
    """
    identity = np.eye(int(used.sum()))
    if metric is None:
        return identity, identity, identity
    matrix = checks.real_array("metric", metric)
    weights = checks.covariance_like("metric", matrix, len(used))[np.ix_(used, used)]
    values, vectors = np.linalg.eigh(weights * size * size[:, None])
    if values[0] < -1e-12 * max(values[-1], 0.0):
        checks.refuse_negative("metric", matrix)
    length = np.sqrt(np.maximum(values, 0.0))
    if length[-1] == 0:
        checks.refuse("metric", "<zero on every point>", "a positive weight somewhere", "Weigh some feature")
    diagonal = not np.any(matrix - np.diag(np.diag(matrix)))
    least = tol / (16 * len(length)) if diagonal else max(tol / (16 * len(length)), 1e-7)
    raised = np.maximum(length, least * length[-1])
    return (vectors * length) @ vectors.T, (vectors * raised) @ vectors.T, (vectors / raised) @ vectors.T


def _interior_point(z: Floats, lam: Floats, slack: Floats, goal: float) -> tuple[Floats, Floats]:
    """Minimize sum(l) - 2 tr (sum l_i z_i z_i')^(1/2) over l >= 0 until the relative gap is below ``goal``.

    The minimizer is s^2 times the optimal weights.  Gradient: u = 1 - g.  Hessian: B B', where B has the
    products of coordinates of z_i in the eigenbasis, weighted by 1 / (r_a r_b (r_a + r_b)).
    """
    d = z.shape[1]
    first, second = np.triu_indices(d)
    twice = np.where(first == second, 1.0, 2.0)
    for step in range(_MOST_STEPS):
        deviation, vectors = _deviations(z, lam)
        deviation = _floored(deviation) * np.sqrt(lam.sum())
        y = z @ vectors.T
        g = (y * y) @ (1 / deviation)
        mean = float(lam @ g / lam.sum())
        if g.max() <= mean * (1 + goal):
            slack = np.maximum(1 - g / mean, goal) if step == 0 else slack
            break
        if step == 0:
            lam, deviation, g = lam * mean**2, deviation * mean, g / mean
        target = 0.1 * float(lam @ slack) / len(lam)
        r_a, r_b = deviation[first], deviation[second]
        features = y[:, first] * y[:, second] * np.sqrt(twice / (r_a * r_b * (r_a + r_b)))
        change = _newton(features, slack / lam, target / lam - (1 - g))
        slack_change = target / lam - slack - slack / lam * change
        lam = lam + _stride(lam, change) * change
        slack = slack + _stride(slack, slack_change) * slack_change
    return lam, slack


def _newton(features: Floats, diagonal: Floats, right: Floats) -> Floats:
    """Solve (B B' + D) x = right, through whichever of the two sides is smaller."""
    root = np.sqrt(diagonal)
    scaled = features / root[:, None]
    if features.shape[0] <= features.shape[1]:
        matrix = scaled @ scaled.T
        matrix[np.diag_indices_from(matrix)] += 1
        return np.asarray(np.linalg.solve(matrix, right / root) / root)
    matrix = scaled.T @ scaled
    matrix[np.diag_indices_from(matrix)] += 1
    inner = scaled @ np.linalg.solve(matrix, scaled.T @ (right / root))
    return np.asarray((right / root - inner) / root)


def _stride(value: Floats, change: Floats) -> float:
    shrinking = change < 0
    return float(min(1.0, 0.95 * (-value[shrinking] / change[shrinking]).min(initial=1.1)))


def _points(points: ArrayLike) -> tuple[Floats, Floats]:
    """Return a copy of the points, and how far they reach along each coordinate."""
    array = checks.real_array("points", points)
    if array.ndim != 2 or not array.size:  # noqa: PLR2004
        found = f"<array in {array.ndim} dimensions>" if array.size else "<no points>"
        checks.refuse("points", found, "shape (n, d) with at least one point", "Stack the points as rows")
    reach = _reach(array)
    if not np.isfinite(reach).all():
        checks.refuse("points", "<array with NaN or infinity>", "finite points", "Remove such points")
    return array, reach


def _reach(points: Floats) -> Floats:
    """Return the largest magnitude in each column, NaN where one is; rows side by side, for speed."""
    n, d = points.shape
    abreast = max(1, _CHUNK // 64 // d)
    whole = n - n % abreast
    wide = np.ascontiguousarray(points[:whole]).reshape(-1, abreast * d)
    parts = [points[whole:]]
    for start in range(0, len(wide), 64):
        block = wide[start : start + 64]
        parts.append(np.maximum(block.max(axis=0), -block.min(axis=0)).reshape(abreast, d))
    return np.asarray(np.abs(np.vstack(parts)).max(axis=0))
