"""A private summary of where the rows are: a tree of noisy counts, and sums at its leaves.

The tree starts at a level whose cells can be told from noise, and a cell is split while its noisy count
stands clear of the noise of the next level.  Everything here but ``fold`` reads released numbers only.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from huemeans.fold import Box

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

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
    """The leaves of a private tree: cells with noisy counts and, once measured, means."""

    middles: Floats
    """(m, p) in box coordinates."""

    half_widths: Floats
    """(m, p)."""

    counts: Floats
    """(m,): noisy numbers of rows, above zero."""

    offsets: Floats
    """(m, d) in metric coordinates: how far the noisy mean lies from the middle of the cell, shrunk."""


@dataclass(eq=False)
class Tree:
    """A tree that grows level by level from noisy counts."""

    box: Box
    nodes: Integers
    level: int = 0
    leaf_keys: list[tuple[int, int, Integers, Floats, float]] = field(default_factory=list)
    """Per level: the level, the cells it counted, and its leaves: keys, noisy counts, their noise."""

    def children(self, level: int) -> Integers:
        """Return the sorted keys, at ``level``, of all cells below the live nodes."""
        spread = np.arange(1 << (level - self.level), dtype=np.int64)
        return np.sort(((self.nodes[:, None] << (level - self.level)) | spread).ravel())

    def grow(
        self, level: int, keys: Integers, counts: Floats, noise: float, split: tuple[float, int]
    ) -> None:
        """Take noisy counts of ``keys``; split those above ``split[0]``, the largest ``split[1]`` of them."""
        split_above, room = split
        order = np.argsort(-counts)
        chosen = order[counts[order] > split_above][:room]
        rest = np.setdiff1d(np.arange(len(keys)), chosen)
        self.leaf_keys.append((level, len(keys), keys[rest], counts[rest], noise))
        self.nodes, self.level = np.sort(keys[chosen]), level

    def kept(self, false_leaves: float) -> list[tuple[int, Integers, Floats]]:
        """Return the leaves that stand clear of the noise, level by level.

        The more cells a level counts, the higher it must be: about ``false_leaves`` empty cells a level pass.
        """
        result = []
        for level, counted, keys, counts, noise in self.leaf_keys:
            clear = counts > noise * float(-ndtri(min(false_leaves / counted, 0.2)))
            order = np.argsort(keys[clear])
            if clear.any():
                result.append((level, keys[clear][order], counts[clear][order]))
        return result


def box_along(center: Integers, directions: Floats, half_widths: Floats, metric: Floats, depth: int) -> Box:
    """Return a box with sides along ``directions``, wide enough for exact projections."""
    least = _LEAST_HALF_WIDTH * (np.abs(directions) * metric).sum(axis=1)
    return Box(center, directions, np.maximum(half_widths, least), metric, depth)


def sample(leaves: Leaves, box: Box, residual: Floats, size: int, rng: np.random.Generator) -> Floats:
    """Draw points from the summary, in metric coordinates about the box's center.

    Each leaf spreads its count evenly over its cell, moved by what its sum says; across the directions
    that the box does not have, points follow the residual covariance (as a square root, (d, d)).
    """
    share = leaves.counts / leaves.counts.sum()
    picked = rng.choice(len(share), size=size, p=share)
    within = leaves.middles[picked] + leaves.half_widths[picked] * rng.uniform(
        -1, 1, (size, leaves.middles.shape[1])
    )
    return np.asarray(
        within @ box.directions + leaves.offsets[picked] + rng.normal(size=(size, len(residual))) @ residual
    )


def elbow(curve: dict[int, float], directions: int) -> int:
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
    """Shrink each row towards zero by the positive-part James-Stein factor, in whitened coordinates.

    ``estimates`` (m, d) have unit noise times ``variances`` (m,); in fewer than three dimensions the factor
    of a Gaussian prior with the mean square as its variance is taken instead.
    """
    squares = (estimates**2).sum(axis=1)
    d = estimates.shape[1]
    freedom = d - 2 if d > 2 else 0.5 * d  # noqa: PLR2004
    factor = np.maximum(0.0, 1 - freedom * variances / np.maximum(squares, 1e-300))
    return np.asarray(estimates * factor[:, None])
