"""Whitened coordinates: integer matrices that turn a clip region into a ball of lattice steps.

A row enters as its integer offset x from a public integer reference point.  ``Whitening`` maps it to
z = W x / 2^shift, in which the clip region is a ball of radius RADIUS.  Noise of one scale is added to sums
of such z, and multiplying by the inverse of W afterwards gives it its color.

The sizes behind this: |x| <= 2^20, every sum_j |W_ij| |x_j| <= 2^52, so that float64 products and sums are
exact in any order; fewer than 2^36 rows, so that sums of offsets stay below 2^56, whitened ones below 2^62.
No row goes through the BLAS, but what is public about clip regions does, so that it must do float64 justice.
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
_MOST_SPREAD: Final = 2.0**-24  # times d: with it W keeps full rank after rounding, for every d < 2048
_LIMB: Final = 28  # bits: a sum of 2^56 has two

ZOOM_BITS: Final = 10
ZOOM: Final = 2**ZOOM_BITS
"""What a zoom of one is written as."""

MOST_ZOOM: Final = 2**20
"""Beyond, a clip region would be too small for its length to be told."""

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Whitening:
    """A public integer matrix W with z = W x / 2^shift, and its inverse.

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
    def scaled(self) -> NDArray[np.float64]:
        """W / 2^shift, transposed: a power of two changes no digit."""
        return np.ascontiguousarray(self.matrix.T * 2.0**-self.shift)

    def products(self, sums: Integers, zooms: Integers | None = None) -> Integers:
        """Return floor(zoom W s / 2^shift), exactly, for sums (n, d) of offsets; zooms in units of 1 / ZOOM.

        Sums are split in two, so that nothing overflows.
        """
        high, low = sums >> _LIMB, sums & (2**_LIMB - 1)
        below = low @ self.matrix.T
        above = high @ self.matrix.T + (below >> _LIMB)
        below &= 2**_LIMB - 1
        if zooms is None:
            if self.shift >= _LIMB:
                return np.asarray(above >> (self.shift - _LIMB))
            return np.asarray((above << (_LIMB - self.shift)) | (below >> self.shift))
        whole = ((above.astype(object) << _LIMB) | below.astype(object)) * zooms.astype(object)[:, None]
        return np.asarray(whole >> (self.shift + ZOOM_BITS)).astype(np.int64)

    def color(self, whitened: ArrayLike) -> NDArray[np.float64]:
        """Take whitened sums or noise, shape (..., d), back to grid steps: post-processing."""
        return np.asarray(np.asarray(whitened, dtype=np.float64) @ self.inverse.T)

    def covariance(self, scale: float) -> NDArray[np.float64]:
        """Return the covariance, in grid steps, of whitened noise of this scale."""
        return np.asarray(scale**2 * self.inverse @ self.inverse.T)


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
