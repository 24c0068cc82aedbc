"""Lemma 4 of Ravi, Scaglione and Peisert, as printed: for comparison, never a default.

The lemma takes as tight the constraints of the smallest differences, as many as there are dimensions, and
solves for their multipliers in closed form.  Both steps are wrong in general (the *outermost* differences
are tight, and the closed form holds for orthogonal ones only), so the covariance breaks the constraint of
most rows.  What it really gives is in ``factor``.

Two readings are needed.  C^(T/2) is taken as (C'C)^(1/4), which is nearly tight on the chosen columns where
other square roots are complex.  And the columns are chosen within a block of centroids that move together,
since each difference lives in one block: the Kd smallest overall are never independent.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from huemeans import checks
from huemeans.errors import InvalidArgument

Floats = NDArray[np.float64]

_INDEPENDENT: Final = 1e-9
_CHUNK: Final = 4096


@dataclass(frozen=True, eq=False)
class Lemma:
    """The lemma's covariance and how far it breaks its own constraints."""

    covariance: Floats
    """R_lambda^(1/2), shape (d, d)."""

    columns: NDArray[np.intp]
    """The rows whose differences the lemma makes tight."""

    factor: float
    """The largest d' covariance^-1 d over *all* differences, over the gamma = m^2 that it must not exceed."""

    chosen_factors: Floats
    """The same for the chosen columns: all one if the closed form were exact."""


def lemma_covariance(points: ArrayLike, m: float, *, span: bool = False) -> Lemma:
    """Return Lemma 4's covariance for differences ``points`` (n, d) and gamma = m^2.

    With ``span`` the lemma is applied in the span of the differences, where its assumption of full row rank
    fails; without, that is an error.

    Examples
    --------
    Orthogonal differences, where the lemma is right:

    >>> lemma = lemma_covariance([[2.0, 0.0], [0.0, 3.0]], 1.0)
    >>> np.round(lemma.covariance, 12).tolist(), round(lemma.factor, 12)
    ([[4.0, 0.0], [0.0, 9.0]], 1.0)

    One inner point more, and the outer ones break their constraint a hundredfold:

    >>> round(lemma_covariance([[0.1], [1.0]], 1.0).factor, 6)
    100.0
    """
    array = checks.real_array("points", points)
    gamma = (
        checks.number("m", m, above=0, expected="a whitened limit above 0", remedy="Use whitened_limit") ** 2
    )
    basis = _basis(array)
    if basis.shape[1] < array.shape[1] and not span:
        raise InvalidArgument(
            "Lemma 4 does not apply (noise='lemma'): expected differences of full rank, as it assumes, and a "
            "constant or repeated feature is enough to break that. Drop such features, or use span=True to "
            "work in the span of the others."
        )
    if not basis.shape[1]:
        raise InvalidArgument(
            "points=<array> is not valid: expected a difference that is not zero. Equal rows need no noise."
        )
    inner = array @ basis
    columns = _smallest_independent(inner)
    chosen = inner[columns]
    multipliers = _closed_form(chosen, gamma)
    values, vectors = np.linalg.eigh(chosen.T @ (multipliers[:, None] * chosen))
    deviation = np.sqrt(np.maximum(values, values[-1] * 1e-30))
    forms = (((inner @ vectors) ** 2) / deviation).sum(axis=1) / gamma
    directions = basis @ vectors
    covariance = (directions * deviation) @ directions.T
    return Lemma(covariance, columns, float(forms.max()), forms[columns])


def _closed_form(chosen: Floats, gamma: float) -> Floats:
    """Return lambda_i = v_i^-2 with v = gamma M^-1 1 and M the squared entries of (C'C)^(1/4)."""
    values, vectors = np.linalg.eigh(chosen @ chosen.T)
    root = (vectors * np.maximum(values, 0.0) ** 0.25) @ vectors.T
    v = gamma * np.linalg.solve(root**2, np.ones(len(chosen)))
    return np.asarray(v**-2.0)


def _basis(points: Floats) -> Floats:
    """Return an orthonormal basis of the span of the points, (d, rank), zero where every point is zero."""
    used = np.asarray(points.any(axis=0))
    basis = np.zeros((len(used), 0))
    if used.any():
        _, lengths, vectors = np.linalg.svd(np.linalg.qr(points[:, used], mode="r"))
        rank = int((lengths > _INDEPENDENT * lengths[0]).sum())
        basis = np.zeros((len(used), rank))
        basis[used] = vectors[:rank].T
    return basis


def _smallest_independent(points: Floats) -> NDArray[np.intp]:
    """Go through the points by growing norm and keep each that is independent of those kept before."""
    rank = points.shape[1]
    lengths = np.linalg.norm(points, axis=1)
    queue = np.argsort(lengths, kind="stable")
    kept: list[int] = []
    found = np.zeros((rank, 0))
    while len(kept) < rank and queue.size:
        head = queue[:_CHUNK]
        rest = points[head] - (points[head] @ found) @ found.T
        rest -= (rest @ found) @ found.T
        fresh = np.flatnonzero(np.linalg.norm(rest, axis=1) > _INDEPENDENT * lengths[head])
        if not fresh.size:
            queue = queue[_CHUNK:]
            continue
        kept.append(int(head[fresh[0]]))
        found = np.column_stack([found, rest[fresh[0]] / np.linalg.norm(rest[fresh[0]])])
        queue = queue[fresh[0] + 1 :]
    return np.array(kept, dtype=np.intp)
