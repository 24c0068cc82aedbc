"""What a release costs each single row, for the eyes of the data holder.

``epsilon_by_row`` holds the covariance fixed, as the guarantee does.  ``recomputed_risk`` asks the harder
question: had the row been missing, the covariance itself would have been another, and whoever can compare
densities sees that, too.  The loss is then a generalized chi-square,

    L(y) = (ln det S' - ln det S) / 2 - (y - c)' S^-1 (y - c) / 2 + (y - c')' S'^-1 (y - c') / 2,

whose tail is found by sampling y ~ N(c, S).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from huemeans.calibrate import Notion, epsilon_at

Floats = NDArray[np.float64]

_CHUNK: Final = 20_000


@dataclass(frozen=True)
class RecomputedRisk:
    """The real delta at epsilon for the removal of one row, with the covariance recomputed without it."""

    epsilon: float

    delta: float
    """The hockey-stick delta, E (1 - e^(epsilon - L))_+."""

    tail: float
    """P(L > epsilon), the delta of probabilistic differential privacy."""

    standard_error: float
    """Of either figure, at most; 0 where they are known to be 1."""


def epsilon_by_row(lengths: Floats, delta: float, notion: Notion) -> Floats:
    """Return the exact epsilon at ``delta`` that the release costs each row, from its whitened length."""
    result = np.full(len(lengths), np.inf)
    finite = np.isfinite(lengths)
    result[finite] = epsilon_at(lengths[finite], delta, notion)
    return result


def recomputed_risk(
    here: tuple[Floats, Floats],
    there: tuple[Floats, Floats] | None,
    epsilon: float,
    samples: int,
    rng: np.random.Generator,
) -> RecomputedRisk:
    """Compare N(center, covariance) ``here``, with the row, and ``there``, without it, by sampling here.

    A direction that carries noise under one covariance and none under the other gives the row away, and so
    does a table that allows no release without the row (``None``): then both figures are 1.
    """
    if there is None:
        return RecomputedRisk(epsilon, 1.0, 1.0, 0.0)
    noisy = np.diag(here[1]) > 0
    bare_center = (here[0][~noisy] != there[0][~noisy]).any()
    if bare_center or (noisy != (np.diag(there[1]) > 0)).any():
        return RecomputedRisk(epsilon, 1.0, 1.0, 0.0)
    scale = np.sqrt(np.diag(here[1])[noisy])
    shift = (here[0] - there[0])[noisy] / scale
    inside = np.ix_(noisy, noisy)
    root, other = (
        np.linalg.cholesky(covariance[inside] / np.outer(scale, scale)) for covariance in (here[1], there[1])
    )
    half_log_ratio = float(np.log(np.diag(other)).sum() - np.log(np.diag(root)).sum())
    whiten = np.linalg.inv(other).T
    losses = np.empty(samples)
    for start in range(0, samples, _CHUNK):
        z = rng.normal(size=(min(_CHUNK, samples - start), len(scale)))
        far = (z @ root.T + shift) @ whiten
        losses[start : start + _CHUNK] = half_log_ratio + ((far**2).sum(axis=1) - (z**2).sum(axis=1)) / 2
    excess = np.maximum(0.0, -np.expm1(np.minimum(0.0, epsilon - losses)))
    return RecomputedRisk(
        epsilon, float(excess.mean()), float((losses > epsilon).mean()), 0.5 / float(np.sqrt(samples))
    )
