"""Lu and Shen, "A Convergent Differentially Private k-Means Clustering Algorithm" (arXiv:2002.01043, 2020).

Every pass publishes, for each cluster, a point near its new mean that is certain to serve its rows no worse
than the last centroid did, so that the loss never grows and the algorithm ends. A point is certain to do so
in the *zone*: the ball about the mean with the last centroid on its border. There it is chosen by the
exponential mechanism, nearer points more likely.

The zone is a function of the rows: a point that is possible with a row may be impossible without it, which
no finite epsilon allows. ``zone="published"`` is the method as described, and says so. ``zone="released"``
is what can be kept: noisy means are released, with Laplace noise, and a centroid moves towards its own by
1/t of the way in pass t, so that it converges, too.

Choices made here, where the paper leaves them open or could not be had in full: ten passes at the most,
each with an equal share of epsilon; the quality of a point is minus its distance to the mean, of
sensitivity diagonal / count; the start is a sphere packing.
"""

from typing import Any, Final

import numpy as np
from scipy.special import gammainc, gammaincinv

from huemeans import checks
from huemeans.baselines.balcan2017 import noisy_means
from huemeans.baselines.common import Baseline, Claim, Floats, Table, nearest, packed, sums_by

PASSES: Final = 10
_STILL: Final = 1e-6  # of the diagonal: what counts as no movement


class Lu2020(Baseline):
    """Lloyd with noise in a zone that makes it converge; ``zone`` is "released" or "published"."""

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: Any = (-1, 1),
        zone: str = "released",
        random_state: Any = None,
    ) -> None:
        super().__init__(n_clusters, epsilon=epsilon, delta=delta, bounds=bounds, random_state=random_state)
        self.zone = zone

    def _centers(self, table: Table, k: int) -> Floats:
        checks.choice("zone", self.zone, ("published", "released"))
        centers = packed(table.half, k, table.rng)
        for number in range(1, PASSES + 1):
            labels = nearest(table.rows, centers)
            if self.zone == "released":
                centers = centers + (noisy_means(table, labels, k, self.epsilon / PASSES) - centers) / number
                continue
            moved = self._within_zones(table, labels, centers)
            still = np.abs(moved - centers).max() <= _STILL * np.linalg.norm(table.half)
            centers = moved
            if still:
                break
        return centers

    def _within_zones(self, table: Table, labels: Any, centers: Floats) -> Floats:
        counts, sums = sums_by(labels, table.rows, len(centers))
        moved = centers.copy()
        for cluster in np.flatnonzero(counts):
            mean = sums[cluster] / counts[cluster]
            radius = float(np.linalg.norm(centers[cluster] - mean))
            sensitivity = 2 * float(np.linalg.norm(table.half)) / counts[cluster]
            moved[cluster] = mean + drawn_in_ball(
                len(mean), radius, self.epsilon / PASSES / (2 * sensitivity), table.rng
            )
        return moved

    def _claim(self) -> Claim:
        if self.zone == "released":
            words = "pure epsilon-DP when a row is added or removed"
            return Claim(self.epsilon, 0.0, "add-remove", words)
        words = (
            "no differential privacy: where a centroid can lie at all depends on the rows, and so does the "
            "number of passes"
        )
        return Claim(np.inf, 1.0, "add-remove", words)


def drawn_in_ball(d: int, radius: float, rate: float, rng: np.random.Generator) -> Floats:
    """Return a point of the ball about zero, of density proportional to exp(-rate * length)."""
    direction = rng.normal(size=d)
    direction /= np.linalg.norm(direction)
    whole, part = gammainc(d, rate * radius), rng.random()
    even = radius * part ** (1 / d)
    length = float(gammaincinv(d, part * whole)) / rate if whole > np.finfo(np.float64).tiny else even
    return np.asarray(direction * min(length, radius))
