"""A public box with sides along public directions, halved along its longest side, level by level.

All cells of a level are congruent.  A cell's key has one bit a level: which half.  A row outside the box is
moved into it, so every row lies in exactly one cell of each level; which one is a fact about integers.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Cells = NDArray[np.intp]

MOST_DEPTH: Final = 20
"""Levels of a box: tables by key stay small."""

_GRID_BITS: Final = 19
_EXACT_BITS: Final = 52
_BITS: Final = 36  # of the place of a row along a side


@dataclass(frozen=True, eq=False)
class Box:
    """A box and its levels of cells."""

    center: Integers
    """(d,) in grid steps."""

    directions: Floats
    """(p, d): unit vectors in metric coordinates."""

    half_widths: Floats
    """(p,) in metric coordinates."""

    metric: Floats
    """(d,): the metric length of a grid step."""

    depth: int

    @cached_property
    def axes(self) -> NDArray[np.intp]:
        """Return the side that is halved at each level."""
        widths, chosen = self.half_widths.copy(), []
        for _ in range(self.depth):
            chosen.append(int(widths.argmax()))
            widths[chosen[-1]] /= 2
        return np.array(chosen, dtype=np.intp)

    @cached_property
    def _projection(self) -> Floats:
        """Integer columns that take an offset to [-2^35, 2^35) across the box."""
        scaled = self.directions * self.metric / self.half_widths[:, None] * 2.0 ** (_BITS - 1)
        room = 2.0 ** (_EXACT_BITS - _GRID_BITS - 1) / np.abs(scaled).sum(axis=1)
        return np.ascontiguousarray(np.rint(scaled * np.minimum(1.0, room)[:, None]).T)

    def keys(self, rows: Floats, level: int) -> Cells:
        """Return the key of each grid row (n, d) at a level: exact integers all the way."""
        along = rows @ self._projection
        along += 2.0 ** (_BITS - 1) - self.center @ self._projection
        halvings = np.bincount(self.axes[:level], minlength=len(self.half_widths))
        key = np.zeros(len(rows), dtype=np.intp)
        for side, times in enumerate(halvings):
            if times:
                place = np.clip(along[:, side], 0.0, 2.0**_BITS - 1) * 2.0 ** (times - _BITS)
                key |= self._spread(side, level)[place.astype(np.intp)]
        return key

    def _spread(self, side: int, level: int) -> Cells:
        """Return, for each place along a side, the bits that it has in a key of this level."""
        if (side, level) not in self._spreads:
            bits = level - 1 - np.flatnonzero(self.axes[:level] == side)
            places = np.arange(1 << len(bits))
            spread = np.zeros(len(places), dtype=np.intp)
            for at, bit in enumerate(bits):
                spread |= ((places >> (len(bits) - 1 - at)) & 1) << bit
            self._spreads[side, level] = spread
        return self._spreads[side, level]

    @cached_property
    def _spreads(self) -> dict[tuple[int, int], Cells]:
        return {}

    def cells(self, keys: Integers, level: int) -> tuple[Floats, Floats]:
        """Return the middles (m, p) and the half-widths (p,) of cells of a level, in box coordinates."""
        middle = np.zeros((len(keys), len(self.half_widths)))
        width = self.half_widths.copy()
        for at, axis in enumerate(self.axes[:level]):
            width[axis] /= 2
            bit = (keys >> (level - 1 - at)) & 1
            middle[:, axis] += np.where(bit == 1, width[axis], -width[axis])
        return middle, width
