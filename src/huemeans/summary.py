"""A private summary of where the rows are: moments, and the leaves of a tree with their means.

Everything here reads released numbers only.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from sklearn.metrics import pairwise_distances_argmin_min

from huemeans.box import Box

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_NO_MASS: Final = (
    1e-14  # of a Gaussian: beyond, rounding decides and the nearest point of a cell stands for it
)
_PSEUDO: Final = 10.0  # points of the pooled scale that each cluster is given
_ROUNDS: Final = 10
_CLEAR: Final = 2.0  # deviations above its mean that the square of noise alone stays below
_LEAST_HALF_WIDTH: Final = 8  # grid steps across a box, so that its projection stays exact


@dataclass(frozen=True, eq=False)
class Moments:
    """A private mean and second moment in metric coordinates, with the spectral size of its noise."""

    mean: Floats
    covariance: Floats
    noise: float

    def spread(self) -> Floats:
        """Return the covariance with eigenvalues floored at a tenth of the noise, and at zero."""
        if not np.isfinite(self.noise):
            return self.covariance
        values, vectors = np.linalg.eigh(self.covariance)
        return np.asarray((vectors * np.maximum(values, 0.1 * self.noise)) @ vectors.T)

    def principal(self, most: int) -> tuple[Floats, Floats]:
        """Return the directions, (p, d), whose variance stands clear of the noise, and variances."""
        values, vectors = np.linalg.eigh(self.covariance)
        order = np.argsort(-values)[:most]
        clear = order[values[order] > self.noise]
        return vectors[:, clear].T, values[clear]


@dataclass(frozen=True, eq=False)
class Leaves:
    """Cells that make up the whole box, with noisy counts and, where measured, means.

    Within a cell, rows are expected to lie as a centered Gaussian of these deviations does, cut to the cell;
    where a deviation is infinite, evenly.
    """

    low: Floats
    high: Floats
    """(m, p) in box coordinates."""

    deviations: Floats
    """(p,)."""

    counts: Floats
    """(m,): posterior numbers of rows."""

    offsets: Floats
    """(m, d) in metric coordinates: how far the noisy mean lies from the expected one, shrunk."""

    clear: NDArray[np.bool_]
    """(m,): which counts stand clear of their noise."""

    def only_clear(self) -> "Leaves":
        """Return those leaves whose counts stand clear of their noise; all, if none does."""
        kept = self.clear if self.counts[self.clear].any() else np.ones_like(self.clear)
        return Leaves(
            self.low[kept],
            self.high[kept],
            self.deviations,
            self.counts[kept],
            self.offsets[kept],
            self.clear[kept],
        )

    def expected(self) -> Floats:
        """Return the means of the cells as they are expected, (m, p) in box coordinates."""
        return cell_means(self.low, self.high, self.deviations)


def cell_means(low: Floats, high: Floats, deviations: Floats) -> Floats:
    """Return the mean of a centered Gaussian cut to each cell, and the middle where it is flat."""
    means = np.empty_like(low)
    for side, deviation in enumerate(deviations):
        a, b = low[:, side], high[:, side]
        if np.isinf(deviation):
            means[:, side] = (a + b) / 2
        else:
            mass = ndtr(b / deviation) - ndtr(a / deviation)
            density = np.exp(-0.5 * (a / deviation) ** 2) - np.exp(-0.5 * (b / deviation) ** 2)
            mean = deviation * density / np.sqrt(2 * np.pi) / np.maximum(mass, _NO_MASS)
            means[:, side] = np.clip(np.where(mass > _NO_MASS, mean, 0.0), a, b)
    return means


def draw_within(low: Floats, high: Floats, deviations: Floats, rng: np.random.Generator) -> Floats:
    """Draw a point in each cell from a centered Gaussian cut to it, or evenly where it is flat."""
    points = rng.uniform(size=low.shape)
    for side, deviation in enumerate(deviations):
        a, b, u = low[:, side], high[:, side], points[:, side]
        if np.isinf(deviation):
            points[:, side] = a + u * (b - a)
        else:
            start = ndtr(a / deviation)
            drawn = deviation * ndtri(start + u * (ndtr(b / deviation) - start))
            points[:, side] = np.clip(np.where(np.isfinite(drawn), drawn, 0.0), a, b)
    return points


def box_along(center: Integers, directions: Floats, half_widths: Floats, metric: Floats, depth: int) -> Box:
    """Return a box with sides along ``directions``, wide enough for exact projections."""
    least = _LEAST_HALF_WIDTH * (np.abs(directions) * metric).sum(axis=1)
    return Box(center, directions, np.maximum(half_widths, least), metric, depth)


def sample(leaves: Leaves, box: Box, residual: Floats, size: int, rng: np.random.Generator) -> Floats:
    """Draw points from the summary, in metric coordinates about the box's center.

    Across the directions that the box does not have, points follow the residual covariance (as a square
    root, (d, d)).
    """
    share = leaves.counts / leaves.counts.sum()
    picked = rng.choice(len(share), size=size, p=share)
    within = draw_within(leaves.low[picked], leaves.high[picked], leaves.deviations, rng)
    return np.asarray(
        within @ box.directions + leaves.offsets[picked] + rng.normal(size=(size, len(residual))) @ residual
    )


@dataclass(frozen=True, eq=False)
class Guess:
    """What the summary expects of the clusters about given centroids, in metric coordinates."""

    counts: Floats
    second: Floats
    """(d, d): the pooled second moment within clusters."""

    scale: float
    scales: Floats
    """The root mean square distance from the centroid, over all and per cluster (K,)."""


def guess_clusters(points: Floats, centers: Floats, n: float) -> Guess:
    """Expect of ``n`` rows what a sample of the summary shows, shrunk a little towards the pooled scale."""
    labels, distances = pairwise_distances_argmin_min(points, centers)
    within = points - centers[labels]
    found = np.bincount(labels, minlength=len(centers))
    pooled = max(float((distances**2).mean()), np.finfo(np.float64).tiny)
    squares = np.bincount(labels, weights=distances**2, minlength=len(centers))
    own = (squares + _PSEUDO * pooled) / (found + _PSEUDO)
    second: Floats = within.T @ within / len(points)
    counts: Floats = (found * (n / len(points))).astype(np.float64)
    scales: Floats = np.asarray(np.sqrt(own))
    return Guess(counts, second, float(np.sqrt(pooled)), scales)


def effective_dimension(points: Floats) -> float:
    """Return in how many directions points spread: (tr V)^2 / tr V^2, d where all are alike."""
    second = np.cov(points.T, ddof=0).reshape(points.shape[1], -1)
    return float(np.trace(second) ** 2 / max(float((second**2).sum()), np.finfo(np.float64).tiny))


def elbow(curve: dict[int, float], directions: float) -> int:
    """Return the K at the elbow of a K-means loss curve.

    Where rows have no clusters, the loss falls like K^(-2/p) in p directions; up to a true number of
    clusters it falls faster, after it slower.  So the least of loss * K^(2/p) inside the range is the
    elbow; if that lies at an end, the K whose loss lies farthest below the chord is.
    """
    ks = np.array(sorted(curve), dtype=float)
    losses = np.array([curve[int(k)] for k in ks])
    level = int((losses * ks ** (2 / directions)).argmin())
    if 0 < level < len(ks) - 1 or len(ks) < 3:  # noqa: PLR2004
        return int(ks[level])
    across = (ks - ks[0]) / (ks[-1] - ks[0])
    down = (losses - losses[-1]) / max(losses[0] - losses[-1], 1e-300)
    return int(ks[(1 - across - down).argmax()])


def shrunk(estimates: Floats, variances: Floats) -> Floats:
    """Shrink each row towards zero, in whitened coordinates, by what all rows say and by what it says itself.

    ``estimates`` (m, d) have unit noise times ``variances`` (m,).  All rows together tell the variance of a
    Gaussian prior; a row that stands clear of its own noise is shrunk by its own James-Stein factor instead,
    if that is milder.
    """
    squares = (estimates**2).sum(axis=1)
    d = estimates.shape[1]
    prior = 0.0
    for _ in range(_ROUNDS):
        weights = (prior + variances) ** -2.0
        prior = max(float(weights @ (squares / d - variances) / weights.sum()), 0.0)
    clear = squares > (d + _CLEAR * np.sqrt(2 * d)) * variances
    own = np.where(clear, 1 - max(d - 2, 0.5 * d) * variances / np.maximum(squares, 1e-300), 0.0)
    return np.asarray(estimates * np.maximum(prior / (prior + variances), own)[:, None])
