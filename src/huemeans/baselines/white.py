"""White Gaussian output perturbation: Theorem 2 of Ravi, Scaglione and Peisert, as printed.

The centroids of K-means are published with noise of one variance for all, sigma = Delta sqrt(2 ln(2/delta))
/ epsilon, Delta the farthest that the removal of a row moves them: at this table, the partition held fixed.
"""

import numpy as np
from sklearn.cluster import KMeans

from huemeans import checks
from huemeans.baselines.common import Baseline, Claim, Floats, Table, sums_by
from huemeans.calibrate import epsilon_at, whitened_limit


class WhiteGaussian(Baseline):
    """Best of ten K-means, and white noise for the local sensitivity of its centroids."""

    def _centers(self, table: Table, k: int) -> Floats:
        rows, rng = table.rows, table.rng
        labels = KMeans(k, n_init=10, random_state=int(rng.integers(2**31))).fit(rows).labels_
        counts, sums = sums_by(labels, rows, k)
        if counts.min() <= 1:
            checks.refuse("n_clusters", repr(k), "clusters of more than one row", "Take fewer clusters")
        centers = sums / counts[:, None]
        moves = np.linalg.norm(rows - centers[labels], axis=1) / (counts - 1)[labels]
        sigma = moves.max() / float(whitened_limit(self.epsilon, self.delta, "paper"))
        return np.asarray(centers + sigma * rng.normal(size=centers.shape))

    def _claim(self) -> Claim:
        m = float(whitened_limit(self.epsilon, self.delta, "paper"))
        words = (
            "probabilistic DP at this table only, for the removal of a row, with the partition and the "
            "variance held fixed and taken for public; not differential privacy"
        )
        return Claim(float(epsilon_at(m, self.delta, "pdp")), self.delta, "this table", words)
