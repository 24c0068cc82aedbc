"""Plain DP-Lloyd: random start in the box, a few passes, white noise on counts and sums about its middle."""

import math

import numpy as np
from numpy.typing import NDArray

from huemeans.calibrate import whitened_limit

Floats = NDArray[np.float64]

PASSES = 5


def dp_lloyd(  # noqa: PLR0917  # what any such method is told
    rows: Floats, n_clusters: int, bounds: Floats, epsilon: float, delta: float, rng: np.random.Generator
) -> Floats:
    """Return centroids (K, d) of rows within public bounds (2, d), for rows added or removed."""
    middle, half = bounds.mean(axis=0), np.ptp(bounds, axis=0) / 2
    inside = np.clip(rows, bounds[0], bounds[1]) - middle
    mu = float(whitened_limit(epsilon, delta, "dp")) / math.sqrt(2 * PASSES)
    radius = float(np.linalg.norm(half))
    centers = rng.uniform(-half, half, size=(n_clusters, len(half)))
    for _ in range(PASSES):
        labels = (
            (inside**2).sum(axis=1)[:, None] - 2 * inside @ centers.T + (centers**2).sum(axis=1)
        ).argmin(axis=1)
        for cluster in range(n_clusters):
            own = inside[labels == cluster]
            count = len(own) + rng.normal() / mu
            total = own.sum(axis=0) + rng.normal(size=len(half)) * radius / mu
            centers[cluster] = np.clip(total / max(count, 1.0), -half, half)
    return np.asarray(centers + middle)
