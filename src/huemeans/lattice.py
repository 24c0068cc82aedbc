"""Rows in whitened integer coordinates: exact, clipped, and provably short.

A row enters as its integer offset x from a public integer reference point.  ``Whitening`` maps it to
y = clip(trunc(W x / 2^shift)), an integer vector with ||y||^2 <= RADIUS^2.  Noise of one scale is added to
the sum of the y, and multiplying by the inverse of W afterwards gives it its color.

Guarantees (each has a test of its name):

* the contribution of a row is a function of that row and of public state alone, to the last bit, whatever
  batch, memory order or thread it comes in;
* its squared length, computed exactly, never exceeds RADIUS^2, whatever the row holds; a row for which it
  would is given zero, so the sensitivity is a fact about integers and not about rounding;
* the sum of fewer than 2^36 contributions fits into int64.

The sizes behind this: |x| <= 2^20, every sum_j |W_ij| |x_j| <= 2^52 so that float64 products and sums are
exact integers in any order, |z_i| <= 2^26 before squares are taken, d < 2048 so that sum z_i^2 < 2^63.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from huemeans import checks

RADIUS: Final = 2**26
"""The most that one row contributes to a whitened sum, in lattice steps."""

MOST_OFFSET: Final = 2**20
MOST_FEATURES: Final = 2047
MOST_ROWS: Final = 2**36

_EXACT: Final = 2**52
_MOST_SHIFT: Final = 52
_MOST_ENTRY: Final = 2.0**60
_MOST_SPREAD: Final = 2.0**-24  # times d: with it W keeps full rank after rounding, for every d < 2048
_RADIUS_BITS: Final = 26

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Whitening:
    """A public integer matrix W with z = trunc(W x / 2^shift), and its inverse.

    The released covariance is computed from this very W, so rounding W costs no privacy and no honesty.
    """

    matrix: Integers
    """W, shape (d, d)."""

    shift: int
    """The power of two that is divided away."""

    def __post_init__(self) -> None:
        """Assert the sizes that make every product exact, on public state."""
        wide = np.abs(self.matrix.astype(np.float64)).sum(axis=1).max() > _EXACT / MOST_OFFSET
        if self.matrix.shape[1] > MOST_FEATURES or wide or not 0 <= self.shift <= _MOST_SHIFT:
            found = f"<W of shape {self.matrix.shape}, shift {self.shift}>"
            checks.refuse("whitening", found, "a W whose products stay exact", "Build it with from_shape")

    @classmethod
    def from_shape(cls, shape: ArrayLike, step: ArrayLike, radius: float) -> "Whitening":
        """Build the W that clips offsets to {v : v' shape^-1 v <= radius^2}, v in raw units.

        ``shape`` is symmetric positive semidefinite, ``step`` the raw width of a grid step per feature.
        A direction in which the ellipsoid is thinner than a grid step, or too thin beside the widest one
        for W to hold both, is widened: more noise there, never less.  One in which it is longer than any
        offset is cut to that length, which clips nobody.
        """
        clip = checks.number(
            "radius", radius, above=0, expected="a length above 0", remedy="Clip further out"
        )
        steps = checks.public_array(
            "step", step, above=0.0, expected="widths above 0", remedy="Use the steps of a Domain"
        )
        matrix = checks.covariance_like("shape", checks.real_array("shape", shape), len(steps))
        values, vectors = np.linalg.eigh(clip**2 * (matrix / steps / steps[:, None]))
        half_widths = np.clip(np.sqrt(np.maximum(values, 0.0)), 1.0, float(MOST_OFFSET * len(steps)))
        half_widths = np.maximum(half_widths, half_widths.max() * len(steps) * _MOST_SPREAD)
        whiten = (vectors * (RADIUS / half_widths)) @ vectors.T
        room = _EXACT / (2 * MOST_OFFSET * np.abs(whiten).sum(axis=1).max())
        shift = int(np.clip(np.floor(np.log2(room)), 0, _MOST_SHIFT))
        return cls(np.rint(whiten * 2.0**shift).astype(np.int64), shift)

    @cached_property
    def inverse(self) -> NDArray[np.float64]:
        """The matrix that takes whitened lattice steps back to grid steps."""
        return np.linalg.inv(self.matrix.astype(np.float64)) * 2.0**self.shift

    @cached_property
    def _scaled(self) -> NDArray[np.float64]:
        """W / 2^shift, transposed: a power of two changes no digit."""
        return np.ascontiguousarray(self.matrix.T * 2.0**-self.shift)

    def contribution(self, offsets: ArrayLike) -> NDArray[np.float64]:
        """Map integer offsets (n, d) to clipped whitened rows (n, d), each of squared length <= RADIUS^2.

        A row with anything but whole numbers within MOST_OFFSET, which no grid makes, contributes zero.
        """
        x = np.asarray(offsets, dtype=np.float64)
        valid = ((np.abs(x) <= MOST_OFFSET) & (np.trunc(x) == x)).all(axis=1, keepdims=True)
        return clipped(np.where(valid, x, 0.0) @ self._scaled)

    def contributions_about(
        self, rows: NDArray[np.float64], references: Integers, cells: NDArray[np.intp], zooms: ArrayLike = 1.0
    ) -> NDArray[np.float64]:
        """Map grid rows (n, d) to clipped whitened offsets from the reference (K, d) of each row's cell.

        W x - W c is W (x - c) to the last bit.  ``zooms`` is a scalar, or (K,): the factor by which the clip
        region about each reference is drawn smaller.
        """
        z = self._about(rows, references, cells)
        if np.ndim(zooms):
            z *= np.asarray(zooms)[cells, None]
        return clipped(z)

    def squares_about(
        self, rows: NDArray[np.float64], references: Integers, cells: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """Return the squared lengths of truncated whitened offsets, those beyond RADIUS^2 as RADIUS^2."""
        z = np.trunc(self._about(rows, references, cells))
        return np.asarray(np.minimum(np.einsum("ij,ij->i", z, z), float(RADIUS**2)))

    def _about(
        self, rows: NDArray[np.float64], references: Integers, cells: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        if not (np.abs(references) <= MOST_OFFSET // 2).all():
            checks.refuse(
                "references", "<array>", f"grid values up to {MOST_OFFSET // 2}", "Clip them to the grid"
            )
        z = rows @ self._scaled
        z -= (references @ self._scaled)[cells]
        return z

    def color(self, whitened: ArrayLike) -> NDArray[np.float64]:
        """Take whitened sums or noise, shape (..., d), back to grid steps: post-processing."""
        return np.asarray(np.asarray(whitened, dtype=np.float64) @ self.inverse.T)

    def covariance(self, scale: float) -> NDArray[np.float64]:
        """Return the covariance, in grid steps, of whitened noise of this scale."""
        return np.asarray(scale**2 * self.inverse @ self.inverse.T)


def clipped(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Truncate rows to integers and shorten those beyond length RADIUS to it; works in place.

    Squared lengths up to RADIUS^2 = 2^52 are exact in float64, whatever the order of addition, and longer
    ones never come out shorter: a sum of squares that passes 2^53 on the way stays beyond it.  So which rows
    are short is a fact about integers.
    """
    np.trunc(z, out=z)
    long = np.flatnonzero(~(np.einsum("ij,ij->i", z, z) <= RADIUS**2))
    if long.size:
        z[long] = _shortened(z[long])
    return z


def _shortened(z: NDArray[np.float64]) -> Integers:
    """Shorten integer rows to length RADIUS at most; rows with an entry beyond 2^60 become zero.

    A row is first halved until its entries fit (so that its squares do), then scaled by correctly rounded
    single operations on that row, rounded towards zero, and measured in int64.
    """
    z = np.where((np.abs(z) <= _MOST_ENTRY).all(axis=1, keepdims=True), z, 0.0)
    _, exponent = np.frexp(np.abs(z).max(axis=1, initial=0.0))
    halvings = np.maximum(exponent - _RADIUS_BITS, 0)
    z = np.trunc(np.ldexp(z, -halvings[:, None]))
    square = _squared_length(z.astype(np.int64))
    factor = RADIUS / np.sqrt(np.maximum(square, 1).astype(np.float64)) * (1 - 2.0**-40)
    y = np.trunc(z * factor[:, None]).astype(np.int64)
    y[_squared_length(y) > RADIUS**2] = 0
    return y


def _squared_length(rows: Integers) -> Integers:
    return np.asarray((rows * rows).sum(axis=1))


def blas_is_exact() -> bool:
    """Multiply integers that need all 53 bits through the BLAS in use, as some emulate float64."""
    rows = np.arange(1, 65)[:, None] * np.arange(1, 33) + 2**20 - 2**12
    columns = (np.arange(1, 33)[:, None] * np.arange(1, 65)) * 7 + 2**26 - 2**14
    product = rows.astype(np.float64) @ columns.astype(np.float64)
    return bool((product.astype(np.int64) == rows @ columns).all())


if not blas_is_exact():  # pragma: no cover
    raise ImportError(
        "the BLAS that numpy uses does not multiply float64 exactly: install another numpy build"
    )
