"""A public box with sides along public directions, halved along its longest side, level by level.

All cells of a level are congruent.  A cell's key has one bit a level: which half.  A row outside the box is
moved into it, so every row lies in exactly one cell of each level; which one is a fact about integers.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from huemeans import checks, kernels

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_Places = tuple[Floats, Floats, Floats, Integers, Integers]

MOST_DEPTH: Final = 20
"""Levels of a box: tables by key stay small."""

_GRID_BITS: Final = 19
_EXACT_BITS: Final = 52
_BITS: Final = kernels.PLACE_BITS


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
    _levels: dict[int, _Places] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def axes(self) -> NDArray[np.intp]:
        """Return the side that is halved at each level."""
        widths, chosen = self.half_widths.copy(), []
        for _ in range(self.depth):
            chosen.append(int(widths.argmax()))
            widths[chosen[-1]] /= 2
        return np.array(chosen, dtype=np.intp)

    @cached_property
    def _columns(self) -> Floats:
        """(p, d): integers that take an offset to [-2^35, 2^35) across the box."""
        scaled = self.directions * self.metric / self.half_widths[:, None] * 2.0 ** (_BITS - 1)
        room = 2.0 ** (_EXACT_BITS - _GRID_BITS - 1) / np.abs(scaled).sum(axis=1)
        return np.ascontiguousarray(np.rint(scaled * np.minimum(1.0, room)[:, None]))

    def keys(self, rows: NDArray[np.int32], level: int) -> Integers:
        """Return the key of each grid row (n, d) at a level: exact integers all the way."""
        checks.width("rows", rows, len(self.metric))
        keys = np.empty(len(rows), dtype=np.int64)
        kernels.cell_keys(np.ascontiguousarray(rows), *self._places(level), keys)
        return keys

    def _places(self, level: int) -> _Places:
        """Return what the kernel reads: sides that are halved, and the bits that each place has in a key."""
        if level not in self._levels:
            halvings = np.bincount(self.axes[:level], minlength=len(self.half_widths))
            sides = np.flatnonzero(halvings) if level else np.zeros(1, dtype=np.intp)
            columns = np.ascontiguousarray(self._columns[sides])
            shifts = 2.0 ** (_BITS - 1) - columns @ self.center
            shrink = np.ldexp(1.0, halvings[sides] - _BITS)
            bits = [self._spread(int(side), level) for side in sides]
            starts = np.cumsum([0, *map(len, bits[:-1])], dtype=np.int64)
            self._levels[level] = columns, shifts, shrink, starts, np.concatenate(bits)
        return self._levels[level]

    def _spread(self, side: int, level: int) -> Integers:
        """Return, for each place along a side, the bits that it has in a key of this level."""
        bits = level - 1 - np.flatnonzero(self.axes[:level] == side)
        places = np.arange(1 << len(bits))
        spread = np.zeros(len(places), dtype=np.int64)
        for at, bit in enumerate(bits):
            spread |= ((places >> (len(bits) - 1 - at)) & 1) << bit
        return spread

    def cells(self, keys: Integers, level: int) -> tuple[Floats, Floats]:
        """Return the middles (m, p) and the half-widths (p,) of cells of a level, in box coordinates."""
        middle = np.zeros((len(keys), len(self.half_widths)))
        width = self.half_widths.copy()
        for at, axis in enumerate(self.axes[:level]):
            width[axis] /= 2
            bit = (keys >> (level - 1 - at)) & 1
            middle[:, axis] += np.where(bit == 1, width[axis], -width[axis])
        return middle, width
