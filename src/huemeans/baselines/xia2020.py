"""Xia, Hua, Tong and Zhong, "Distributed K-Means Clustering Guaranteeing Local Differential Privacy" (2020).

There is no trusted party: each person codes each feature in bits, flips every bit with some chance, and
sends that once. In each pass the server sends centroids, people answer with the number of the nearest, and
the server averages what it holds of those who gave the same answer, corrected for the flips.

In the basic mechanism the answers are true, pass after pass: they are not covered by the epsilon of the
bits. The extended mechanism perturbs the answers, too, by randomized response, and spends half of epsilon
on them. ``extended=True`` is the default.

Choices made here, where the paper leaves them open or could not be had in full: six bits a feature, of
which the larger ones get more of the epsilon, in proportion to what they weigh to the power 2/3; five
passes; means of unbiased estimates; the start is a sphere packing.
"""

from typing import Any, Final

import numpy as np
from scipy.special import expit

from huemeans.baselines.common import Baseline, Claim, Floats, Labels, Table, nearest, packed

BITS: Final = 6
PASSES: Final = 5


class Xia2020(Baseline):
    """K-means over what people have perturbed at their own end."""

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: Any = (-1, 1),
        extended: bool = True,
        random_state: Any = None,
    ) -> None:
        super().__init__(n_clusters, epsilon=epsilon, delta=delta, bounds=bounds, random_state=random_state)
        self.extended = extended

    def _centers(self, table: Table, k: int) -> Floats:
        half, rng = table.half, table.rng
        for_bits = self.epsilon / 2 if self.extended else self.epsilon
        held = perturbed_rows(table.rows, half, for_bits, rng)
        centers = packed(half, k, rng)
        for _ in range(PASSES):
            answers = nearest(table.rows, centers)
            weights = np.eye(k)[answers]
            if self.extended and k > 1:
                weights = perturbed_answers(answers, k, self.epsilon / 2 / PASSES, rng)
            counts, sums = weights.sum(axis=0), weights.T @ held
            means = np.clip(sums / np.maximum(counts, 1.0)[:, None], -half, half)
            centers = np.where((counts > 1)[:, None], means, centers)
        return centers

    def _claim(self) -> Claim:
        if self.extended:
            words = "pure epsilon-DP of each person's own messages, whatever the row is replaced by"
            return Claim(self.epsilon, 0.0, "local", words)
        words = "the bits are epsilon-DP, but every pass sends the true number of the nearest centroid"
        return Claim(np.inf, 1.0, "local", words)


def bit_chances(epsilon: float, d: int) -> Floats:
    """Return the chance with which each of a feature's bits is flipped, the largest bit first."""
    weights = (2.0 ** -np.arange(1, BITS + 1)) ** (2 / 3)
    each = epsilon / d * weights / weights.sum()
    return np.asarray(expit(-each))


def perturbed_rows(rows: Floats, half: Floats, epsilon: float, rng: np.random.Generator) -> Floats:
    """Return unbiased estimates of rows, each from its own flipped bits."""
    place = (rows + half) / (2 * half) * (2**BITS - 1)
    low = np.floor(place)
    codes = (low + (rng.random(rows.shape) < place - low)).astype(np.int64)
    flips = bit_chances(epsilon, rows.shape[1])
    found = np.zeros(rows.shape)
    for at, flip in enumerate(flips):
        bits = (codes >> (BITS - 1 - at)) & 1
        sent = bits ^ (rng.random(rows.shape) < flip)
        found += 2.0 ** (BITS - 1 - at) * (sent - flip) / max(1 - 2 * flip, 1e-12)
    return np.asarray(found / (2**BITS - 1) * (2 * half) - half)


def answer_chances(k: int, epsilon: float) -> tuple[float, float]:
    """Return the chances of the true answer and of each other one: k-ary randomized response."""
    other = np.exp(-epsilon) / (1 + (k - 1) * np.exp(-epsilon))
    return float(1 - (k - 1) * other), float(other)


def perturbed_answers(answers: Labels, k: int, epsilon: float, rng: np.random.Generator) -> Floats:
    """Return unbiased estimates (n, k) of who answers what."""
    true, other = answer_chances(k, epsilon)
    lie = rng.random(len(answers)) >= true
    shift = rng.integers(1, k, size=len(answers))
    sent = np.where(lie, (answers + shift) % k, answers)
    return np.asarray((np.eye(k)[sent] - other) / (true - other))
