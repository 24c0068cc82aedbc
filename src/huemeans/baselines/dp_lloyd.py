"""DP-Lloyd with the plan of Su, Cao, Li, Bertino and Jin, "Differentially Private K-Means Clustering" (2016).

Lloyd's algorithm on rows about the middle of the box, Laplace noise on every count and sum. The number of
passes is epsilon over the least that a useful pass needs, 2 to 7; counts and the d sums of a pass share its
epsilon as (4 d rho^2)^(1/3) : d, rho = 0.225; the start is a sphere packing.

Choices made here: a feature's noise is scaled to its own bounds, and distances are those of raw units.
"""

from typing import Final

import numpy as np

from huemeans.baselines.common import N_PUBLIC, Baseline, Claim, Floats, Table, nearest, packed, sums_by

_RHO: Final = 0.225
_USEFUL: Final = 500.0
_PASSES: Final = (2, 7)


class DPLloyd(Baseline):
    """Plain DP-Lloyd: pure epsilon-DP; delta is not used."""

    def _centers(self, table: Table, k: int) -> Floats:
        rows, half, rng = table.rows, table.half, table.rng
        passes = passes_of(self.epsilon, len(rows), len(half), k)
        count_scale, sum_scales = scales_of(self.epsilon / passes, half)
        centers = packed(half, k, rng)
        for _ in range(passes):
            counts, sums = sums_by(nearest(rows, centers), rows, k)
            counts += rng.laplace(size=k) * count_scale
            sums += rng.laplace(size=sums.shape) * sum_scales
            centers = np.clip(sums / np.maximum(counts, 1.0)[:, None], -half, half)
        return centers

    def _claim(self) -> Claim:
        words = f"pure epsilon-DP when a row is added or removed, {N_PUBLIC}"
        return Claim(self.epsilon, 0.0, "add-remove", words)


def passes_of(epsilon: float, n: int, d: int, k: int) -> int:
    """Return how many passes of a useful epsilon there are."""
    least = np.sqrt(_USEFUL * k**3 / max(n, 1) ** 2 * (d + _count_weight(d)) ** 3)
    return int(np.clip(epsilon / least, *_PASSES))


def scales_of(epsilon: float, half: Floats) -> tuple[float, Floats]:
    """Return the scales of the Laplace noise on a count and on the sums of a pass."""
    d, weight = len(half), _count_weight(len(half))
    each = epsilon / (d + weight)
    return 1 / (each * weight), half / each


def _count_weight(d: int) -> float:
    return float((4 * d * _RHO**2) ** (1 / 3))
