"""What the noise leaves open about released centroids: exact sets, separation, labels that might change.

A centroid is a noisy sum over a noisy count, s~ / n~ about a public reference.  The set

    {m : (s~ - n~ m)' (S + t^2 m m')^-1 (s~ - n~ m) <= chi2_d(level)}

covers the mean offset m = s / n of the clipped rows in its cell at exactly that level (Fieller 1954), since
s~ - n~ m is Gaussian with that covariance.  It does not cover the bias of clipping, the sampling error of
the rows, or where the best centroid would have been.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2

Floats = NDArray[np.float64]

_LEAST_COUNT: float = 4.0  # deviations of its noise: below, a count may be zero and a ratio has no variance


@dataclass(frozen=True, eq=False)
class ConfidenceSet:
    """Where the clipped mean of one cluster's rows lies, at a confidence level."""

    reference: Floats
    sum: Floats
    count: float
    sum_covariance: Floats
    count_variance: float
    level: float

    @property
    def bounded(self) -> bool:
        """Whether the set is an ellipsoid; if not, the size of the cluster is not known well enough."""
        return bool(self.count**2 > self.count_variance * chi2.ppf(self.level, len(self.sum)))

    def contains(self, points: ArrayLike) -> NDArray[np.bool_]:
        """Tell for each point (m, d), in raw units, whether it lies in the set."""
        offsets = np.atleast_2d(np.asarray(points, dtype=np.float64)) - self.reference
        apart = self.sum - self.count * offsets
        solved = np.linalg.solve(self.sum_covariance, np.stack([apart, offsets]).swapaxes(1, 2))
        square = np.einsum("nd,dn->n", apart, solved[0])
        cross = np.einsum("nd,dn->n", offsets, solved[0])
        growth = 1 + self.count_variance * np.einsum("nd,dn->n", offsets, solved[1])
        forms = square - self.count_variance * cross**2 / growth  # Sherman and Morrison
        return np.asarray(forms <= chi2.ppf(self.level, len(self.sum)))


def ratio_covariance(sums: Floats, counts: Floats, sum_covariance: Floats, count_variance: float) -> Floats:
    """Return (S + t^2 o o') / n~^2 for each cluster, o its mean offset; NaN where n~ is below 4 t."""
    known = counts > _LEAST_COUNT * np.sqrt(count_variance)
    safe = np.where(known, counts, np.nan)
    offsets = sums / safe[:, None]
    outer = offsets[:, :, None] * offsets[:, None, :]
    return np.asarray((sum_covariance + count_variance * outer) / safe[:, None, None] ** 2)


def separation_p_values(centers: Floats, covariances: Floats) -> Floats:
    """Return, for each pair of clusters, how likely noise alone would part them this far; NaN if unknown."""
    k, d = centers.shape
    result = np.ones((k, k))
    for i in range(k):
        for j in range(i):
            covariance = covariances[i] + covariances[j]
            apart = centers[i] - centers[j]
            known = np.isfinite(covariance).all()
            square = float(apart @ np.linalg.solve(covariance, apart)) if known else np.nan
            result[i, j] = result[j, i] = float(chi2.sf(square, d))
    return result


def label_draws(centers: Floats, covariances: Floats, size: int, rng: np.random.Generator) -> Floats:
    """Return centroids (size, K, d) as the noise could have left them; unknown ones stay where they are."""
    roots = [np.linalg.cholesky(c) if np.isfinite(c).all() else np.zeros_like(c) for c in covariances]
    noise = rng.normal(size=(size, *centers.shape))
    return np.asarray(centers + np.einsum("kij,skj->ski", np.array(roots), noise))
