"""How far the color of noise is from the best: a certificate that anyone can recompute from a release.

Among all covariances A whose ellipsoid clips offsets of second moment V to the same share, tr(W A) tr(A^-1 V)
is least at W^(1/2) A W^(1/2) = (W^(1/2) V W^(1/2))^(1/2), where it is (tr (W^(1/2) V W^(1/2))^(1/2))^2: that
is the inequality of Cauchy and Schwarz for the trace.  So the quotient less one is 0 at the best color, and
says for any other by what share its noise costs too much.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_FLOOR = 1e-6  # of the largest variance, for the others: what lies below is not told from nothing
_TINY = 1e-100


def color_gap(shape: Floats, second_moment: Floats, weights: Floats | None = None) -> float:
    """Return by what share noise of covariance ``shape`` costs more than noise of the best color.

    Examples
    --------
    >>> second = np.diag([1.0, 100.0])
    >>> round(color_gap(np.diag([1.0, 10.0]), second), 12)  # the root of the second moment: the best
    0.0
    >>> round(color_gap(np.eye(2), second), 3)  # white
    0.669
    """
    root = np.ones(len(shape)) if weights is None else np.sqrt(weights)
    values, vectors = np.linalg.eigh(second_moment * root * root[:, None])
    values = np.maximum(values, values[-1] * _FLOOR)
    second = (vectors * values) @ vectors.T
    lengths, axes = np.linalg.eigh(shape * root * root[:, None])
    lengths = np.maximum(lengths, lengths[-1] * _TINY)
    spent = float(lengths.sum() * (np.einsum("ij,ik,kj->j", axes, second, axes) / lengths).sum())
    return max(spent / float(np.sqrt(values).sum()) ** 2 - 1, 0.0)


def white_gap(second_moment: Floats, weights: Floats | None = None) -> float:
    """Return by what share white noise would cost more than noise of the best color."""
    return color_gap(np.eye(len(second_moment)), second_moment, weights)
