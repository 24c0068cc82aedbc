"""Radius-bounded Lloyd: the mechanism of FastLloyd (Diaa, Humphries and Kerschbaum, arXiv:2405.02437).

Rows count as offsets from the published centroid that is nearest, and only within a radius of it, so that
noise is scaled to the radius and not to the box. The first radius is half the diagonal, the others 0.8 of
it divided by K^(1/d); a centroid moves by the radius at most and is folded back at the bounds. Counts and
sums share a pass as 1 : sqrt(4 d) in squared Gaussian-DP budget; passes compose exactly; the start is a
sphere packing.

The public code draws the noise of its first pass alike in all of its runs, and counts and sums from one
stream: here every draw is fresh.
"""

from typing import Final

import numpy as np

from huemeans.baselines.common import N_PUBLIC, Baseline, Claim, Floats, Table, nearest, packed, sums_by
from huemeans.calibrate import whitened_limit

_ALPHA: Final = 0.8
_USEFUL: Final = 0.016
_PASSES: Final = (2, 7)


class FastLloyd(Baseline):
    """Lloyd on offsets within a radius, with Gaussian noise."""

    def _centers(self, table: Table, k: int) -> Floats:
        rows, half, rng = table.rows, table.half, table.rng
        mu = float(whitened_limit(self.epsilon, self.delta, "dp"))
        diagonal = 2 * float(np.linalg.norm(half))
        later = _ALPHA * diagonal / (2 * k ** (1 / len(half)))
        passes = passes_of(mu, len(rows), len(half), k, later / diagonal)
        centers = packed(half, k, rng)
        for at in range(passes):
            radius = later if at else diagonal / 2
            count_scale, sum_scale = scales_of(mu / np.sqrt(passes), len(half), radius)
            counts, sums = bounded_sums(rows, centers, radius)
            counts += rng.normal(size=k) * count_scale
            sums += rng.normal(size=sums.shape) * sum_scale
            centers = folded(centers + shortened(sums / np.maximum(counts, 1.0)[:, None], radius), half)
        return centers

    def _claim(self) -> Claim:
        words = f"(epsilon, delta)-DP when a row is added or removed, {N_PUBLIC}"
        return Claim(self.epsilon, self.delta, "add-remove", words)


def passes_of(mu: float, n: int, d: int, k: int, radius: float) -> int:
    """Return how many passes the budget is worth; the radius is a share of the diagonal."""
    worth = _USEFUL * n**2 * mu**2 / (k**3 * radius**2 * (1 + np.sqrt(4 * d)) ** 2)
    return int(np.clip(worth, *_PASSES))


def scales_of(mu: float, d: int, radius: float) -> tuple[float, float]:
    """Return the deviations of the noise on counts and on sums of a pass."""
    weight = np.sqrt(4 * d)
    return float(np.sqrt(1 + weight) / mu), float(radius * np.sqrt((1 + weight) / weight) / mu)


def bounded_sums(rows: Floats, centers: Floats, radius: float) -> tuple[Floats, Floats]:
    """Count and add up, by nearest center, the offsets of the rows within the radius of it."""
    labels = nearest(rows, centers)
    offsets = rows - centers[labels]
    near = np.linalg.norm(offsets, axis=1) <= radius
    return sums_by(labels[near], offsets[near], len(centers))


def shortened(steps: Floats, longest: float) -> Floats:
    """Return steps of this length at most."""
    lengths = np.linalg.norm(steps, axis=1, keepdims=True)
    return np.asarray(steps * np.minimum(1.0, longest / np.maximum(lengths, 1e-300)))


def folded(centers: Floats, half: Floats) -> Floats:
    """Reflect what lies beyond the box at its sides, as often as needed."""
    place = np.mod(centers + half, 4 * half)
    return np.asarray(np.where(place > 2 * half, 4 * half - place, place) - half)
