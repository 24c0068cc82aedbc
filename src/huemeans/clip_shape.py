"""The color of truly private noise: clip and noise in the shape V^(1/2) of released second moments.

Clipping offsets y to {y' A^-1 y <= r^2} and adding noise of covariance A r^2 / mu^2 costs about
tr(A) tr(A^-1 V), least at A = V^(1/2).  Under A, the squared whitened length y' A^-1 y of a Gaussian offset
has mean tr V^(1/2) and variance 2 tr V, from which the radius is taken so that few rows are clipped.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

Floats = NDArray[np.float64]

_FLOOR: Final = 1e-6  # of the largest variance, for the others


@dataclass(frozen=True, eq=False)
class ClipShape:
    """A clip region {y' shape^-1 y <= radius^2}."""

    shape: Floats
    radius: float

    @property
    def size(self) -> float:
        """The root of the trace of shape * radius^2: what noise costs at mu = 1."""
        return float(self.radius * np.sqrt(np.trace(self.shape)))


def colored_clip(
    second_moment: Floats, clipped_share: float, reach: float, weights: Floats | None = None
) -> ClipShape:
    """Return the clip region for offsets of this second moment, with about ``clipped_share`` of them outside.

    The quantile is that of a gamma law with the mean and variance of y' A^-1 y under Gaussian offsets.
    ``reach`` bounds the lengths that are possible at all.  ``weights`` (d,) say how much the error of each
    feature matters: A = W^(-1/2) (W^(1/2) V W^(1/2))^(1/2) W^(-1/2).
    """
    root = np.ones(len(second_moment)) if weights is None else np.sqrt(weights)
    values, vectors = np.linalg.eigh(second_moment * root * root[:, None])
    deviation = np.sqrt(np.maximum(values, values[-1] * _FLOOR))
    shape = (vectors * deviation) @ vectors.T / root / root[:, None]
    return ClipShape(shape, _radius(deviation, clipped_share, reach, shape))


def white_clip(
    second_moment: Floats, clipped_share: float, reach: float, weights: Floats | None = None
) -> ClipShape:
    """Return the same with a ball in place of the ellipsoid, whatever the weights: the ablation."""
    del weights
    values = np.linalg.eigvalsh(second_moment)
    shape = np.eye(len(values))
    return ClipShape(shape, _radius(np.maximum(values, values[-1] * _FLOOR), clipped_share, reach, shape))


def _radius(scales: Floats, clipped_share: float, reach: float, shape: Floats) -> float:
    """Return the quantile of sum_i scales_i Z_i^2, capped where the region holds every possible offset."""
    mean, variance = float(scales.sum()), 2 * float((scales**2).sum())
    squared = float(gammaincinv(mean**2 / variance, 1 - clipped_share)) * variance / mean
    return float(min(np.sqrt(squared), reach / np.sqrt(np.linalg.eigvalsh(shape)[0])))
