"""Sums of offsets from references, each row's within a clip region: what sums and their noise are made of.

A row inside its region adds its exact whitened offset z; one outside adds an integer vector y in place of
it.  Since z is linear, only the rows' own grid values are added up, and W is applied to the sum, once, and
rounded down to the lattice.

Guarantees (each has a test of its name):

* what a row adds to the totals depends on that row and on public state alone, to the last bit, whatever
  batch, memory order or thread it comes in, and totals of several batches add up;
* one row moves the sums by at most RADIUS, whatever it holds: a fact about integers, not about rounding;
* a row that no grid makes adds to the count of rows only.

The second one holds because |z| < r - sqrt(d) is asked of a row inside, r = RADIUS, by its truncated
entries: with them |trunc z| <= r - 2 sqrt(d).  Rounding down the sum moves it by less than sqrt(d) more.
y has at most the length r - sqrt(d), in integers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from huemeans import checks, kernels
from huemeans.lattice import MOST_OFFSET, MOST_ZOOM, RADIUS, ZOOM, Whitening

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_MARGIN: Final = 1e-9  # far beyond the rounding of d < 2048 terms


@dataclass(frozen=True, eq=False)
class Regions:
    """Clip regions about references."""

    references: Integers
    """(m, d)."""

    whitenings: Sequence[Whitening]
    """One for each group of regions of one shape."""

    groups: Integers
    """(m,): which of them is each region's."""

    zooms: Integers | None = None
    """(m,): how many times smaller than their group's regions are drawn, in units of 1 / ZOOM; None: once."""

    def __post_init__(self) -> None:
        """Assert the sizes that make sums exact, on public state."""
        if not (np.abs(self.references) <= MOST_OFFSET // 2).all():
            wanted = f"grid values up to {MOST_OFFSET // 2}"
            checks.refuse("references", "<array>", wanted, "Clip them to the grid")
        m = len(self.references)
        if self.groups.shape != (m,) or not ((self.groups >= 0) & (self.groups < len(self.whitenings))).all():
            checks.refuse("groups", "<array>", "a whitening for each reference", "Count them from 0")
        if self.zooms is not None:
            checks.shaped("zooms", self.zooms, (m,))
        if self.zooms is not None and not ((self.zooms >= ZOOM) & (self.zooms <= MOST_ZOOM)).all():
            checks.refuse(
                "zooms", "<array>", f"factors of 1 to {MOST_ZOOM // ZOOM}", "Zoom the widest by one"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Of the totals: rows, rows inside, their values, and the y of those outside."""
        return len(self.references), 2 + 2 * self.references.shape[1]

    @cached_property
    def _state(self) -> tuple[Floats, Integers, Floats, Floats, Floats, Floats, float]:
        """What the kernel reads."""
        m, d = self.references.shape
        maps = np.stack([whitening.scaled for whitening in self.whitenings])
        weights = np.maximum((maps**2).sum(axis=2), np.finfo(np.float64).tiny)
        evened = maps / np.sqrt(weights)[:, :, None]
        spread = np.linalg.eigvalsh(evened @ evened.transpose(0, 2, 1))[:, -1] * (1 + _MARGIN)
        root = np.ceil(np.sqrt(d))
        zooms = np.ones(m) if self.zooms is None else self.zooms / ZOOM
        most = np.floor((RADIUS - root) / zooms - root) ** 2
        near = weights.min(axis=1) * kernels.FARTHEST**2  # no offset that is farther is estimated as less
        sure = np.minimum(most / spread[self.groups], near[self.groups]) * (1 - _MARGIN)
        references = self.references.astype(np.float64)
        return references, self.groups.astype(np.int64), weights, maps, sure, most, RADIUS - root

    def add(self, rows: NDArray[np.int32], cells: Integers, total: Integers) -> None:
        """Add grid rows (n, d), each to its cell of ``total``; cell m stands for none."""
        checks.width("rows", rows, self.references.shape[1])
        if len(cells) != len(rows):
            checks.refuse("cells", "<another length>", "a cell for each row", "Find the cell of every row")
        kernels.add_offsets(rows, cells, *self._state, total)

    def sums(self, total: Integers) -> Integers:
        """Return the whitened sums (m, d) that totals stand for."""
        d = self.references.shape[1]
        offsets = total[:, 2 : 2 + d] - total[:, 1:2] * self.references
        sums = total[:, 2 + d :].copy()
        for group, whitening in enumerate(self.whitenings):
            here = self.groups == group
            sums[here] += whitening.products(offsets[here], None if self.zooms is None else self.zooms[here])
        return sums
