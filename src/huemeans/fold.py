"""Rows to exact integer sums, given public state: the one function that touches rows.

Every pass of a fit is a ``State``: public facts that send a grid row to a cell and to an integer vector.
``fold`` adds the vectors up, cell by cell.  Integers add up to the same whatever the order, chunk, thread
or machine, and what a row adds depends on that row and on the public state alone.

Guarantees (each has a test of its name):

* the sums are exact, and the same to the last bit for any order and any chunks of the rows;
* a row adds to one cell (per feature, for histograms) a vector whose length the state bounds;
* no content of a row raises or warns.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from huemeans.lattice import RADIUS, Whitening

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CHUNK: Final = 16384
"""Rows that are looked at together: few enough to stay in the cache, and for float64 sums to be exact."""

MOST_CELLS: Final = 2**21
"""Numbers that are looked at together: with many features, fewer rows."""

_GRID_BITS: Final = 19
_EXACT_BITS: Final = 52
_BOX_BITS: Final = 36
MOMENT_RADIUS: Final = 2**13


class State(Protocol):
    """The public facts of one pass."""

    @property
    def shape(self) -> tuple[int, int]:
        """Cells and width of the sums."""
        ...

    def place(self, grid: NDArray[np.int32]) -> tuple[Integers, Integers]:
        """Return the cell of each row (-1 for none) and the vector that it adds, (n,) and (n, width)."""
        ...


def fold(grid: NDArray[np.int32], state: State) -> Integers:
    """Return the exact sums of a batch of grid rows, shape ``state.shape``."""
    total = np.zeros(state.shape, dtype=np.int64)
    chunk = max(1, min(CHUNK, MOST_CELLS // state.shape[1]))
    for start in range(0, len(grid), chunk):
        cells, vectors = state.place(grid[start : start + chunk])
        inside = cells >= 0
        if not inside.all():
            cells, vectors = cells[inside], vectors[inside]
        for column in range(state.shape[1]):
            sums = np.bincount(cells, weights=vectors[:, column], minlength=state.shape[0])
            total[:, column] += sums.astype(np.int64)
    return total


@dataclass(frozen=True, eq=False)
class Count:
    """How many rows there are, in units of RADIUS."""

    shape: tuple[int, int] = (1, 1)

    def place(self, grid: NDArray[np.int32]) -> tuple[Integers, Integers]:
        """Send every row to the one cell."""
        return np.zeros(len(grid), dtype=np.int64), np.full((len(grid), 1), RADIUS, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Mean:
    """The sum of clipped whitened offsets from a reference; each of length RADIUS at most."""

    reference: Integers
    whitening: Whitening

    @property
    def shape(self) -> tuple[int, int]:
        """One cell."""
        return 1, len(self.reference)

    def place(self, grid: NDArray[np.int32]) -> tuple[Integers, Integers]:
        """Whiten and clip."""
        return np.zeros(len(grid), dtype=np.int64), self.whitening.contribution(grid - self.reference)


@dataclass(frozen=True, eq=False)
class MomentSums:
    """The sum of products y_i y_j, i <= j, of whitened offsets of length MOMENT_RADIUS at most."""

    reference: Integers
    whitening: Whitening

    @cached_property
    def pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The positions i <= j."""
        return np.triu_indices(len(self.reference))

    @property
    def shape(self) -> tuple[int, int]:
        """One cell."""
        return 1, len(self.pairs[0])

    def place(self, grid: NDArray[np.int32]) -> tuple[Integers, Integers]:
        """Whiten, clip, coarsen towards zero and multiply."""
        y = self.whitening.contribution(grid - self.reference)
        coarse = np.trunc(y / (RADIUS // MOMENT_RADIUS)).astype(np.int64)
        return np.zeros(len(grid), dtype=np.int64), coarse[:, self.pairs[0]] * coarse[:, self.pairs[1]]


@dataclass(frozen=True, eq=False)
class Box:
    """A public box with sides along public directions, halved along its longest side, level by level.

    All cells of a level are congruent.  A cell's key has one bit a level: which half.  A row outside the
    box is moved into it, so every row lies in exactly one cell of each level.
    """

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
        """Integer rows that take an offset to [-2^35, 2^35) across the box."""
        scaled = self.directions * self.metric / self.half_widths[:, None] * 2.0 ** (_BOX_BITS - 1)
        room = 2.0 ** (_EXACT_BITS - _GRID_BITS - 1) / np.abs(scaled).sum(axis=1)
        return np.asarray(np.rint(scaled * np.minimum(1.0, room)[:, None]))

    def keys(self, grid: NDArray[np.int32]) -> Integers:
        """Return the key of each row at full depth: exact integers all the way."""
        along = (grid - self.center).astype(np.float64) @ self._projection.T
        half = 2.0 ** (_BOX_BITS - 1)
        place = np.clip(along + half, 0, 2 * half - 1).astype(np.int64)
        key = np.zeros(len(grid), dtype=np.int64)
        used = np.zeros(len(self.half_widths), dtype=np.int64)
        for axis in self.axes:
            used[axis] += 1
            key = (key << 1) | ((place[:, axis] >> (_BOX_BITS - used[axis])) & 1)
        return key

    def cells(self, keys: Integers, level: int) -> tuple[Floats, Floats]:
        """Return the middles (m, p) and the half-widths (p,) of cells of a level, in box coordinates."""
        middle = np.zeros((len(keys), len(self.half_widths)))
        width = self.half_widths.copy()
        for at, axis in enumerate(self.axes[:level]):
            width[axis] /= 2
            bit = (keys >> (level - 1 - at)) & 1
            middle[:, axis] += np.where(bit == 1, width[axis], -width[axis])
        return middle, width


@dataclass(frozen=True, eq=False)
class Level:
    """Counts of chosen cells of one level of a box, in units of RADIUS."""

    box: Box
    level: int
    nodes: Integers
    """Sorted keys of the cells that are counted."""

    @property
    def shape(self) -> tuple[int, int]:
        """One count a cell."""
        return len(self.nodes), 1

    def place(self, grid: NDArray[np.int32]) -> tuple[Integers, Integers]:
        """Send a row to its cell, if that is counted."""
        found = _position(self.box.keys(grid) >> (self.box.depth - self.level), self.nodes)
        return found, np.full((len(grid), 1), RADIUS, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class LeafSums:
    """Sums of clipped whitened offsets from the middles of chosen cells of one level."""

    box: Box
    level: int
    nodes: Integers
    references: Integers
    whitening: Whitening

    @property
    def shape(self) -> tuple[int, int]:
        """One sum a cell."""
        return self.references.shape

    def place(self, grid: NDArray[np.int32]) -> tuple[Integers, Integers]:
        """Send a row's offset to its cell, if that is a leaf."""
        found = _position(self.box.keys(grid) >> (self.box.depth - self.level), self.nodes)
        return found, self.whitening.contribution(grid - self.references[np.maximum(found, 0)])


class Assignment:
    """The nearest centroid of each row, by integer affine scores: a function of the row alone, ties included.

    In the metric |x|^2 = sum (m_j x_j)^2 the nearest of c_k maximizes sum m_j^2 c_kj x_j - |c_k|^2 / 2.  The
    coefficients are rounded to integers that keep every score below 2^52; rounding moves borders by less
    than a step and costs no privacy, since coefficients are public.
    """

    def __init__(self, centers: Floats, metric: Floats) -> None:
        slopes = centers * metric**2
        room = _EXACT_BITS - _GRID_BITS - int(np.ceil(np.log2(centers.shape[1]))) - 1
        scale = 2.0 ** np.floor(room - np.log2(max(np.abs(slopes).max(), 1e-200)))
        self._slopes = np.rint(slopes * scale)
        self._levels = np.rint((slopes * centers).sum(axis=1) * scale / 2)

    def labels(self, grid: NDArray[np.int32]) -> Integers:
        """Return the nearest centroid of each grid row."""
        scores = grid.astype(np.float64) @ self._slopes.T - self._levels
        return np.asarray(scores.argmax(axis=1).astype(np.int64))


@dataclass(frozen=True, eq=False)
class Lloyd:
    """Counts and clipped whitened offset sums of the rows nearest to each centroid: (RADIUS, y)."""

    references: Integers
    """(K, d): the centroids, rounded to the grid."""

    assignment: Assignment
    whitening: Whitening
    zooms: Floats
    """(K,): the factor by which the clip region about each centroid is drawn smaller."""

    @property
    def shape(self) -> tuple[int, int]:
        """A count and a sum for each centroid."""
        return len(self.references), 1 + self.references.shape[1]

    def place(self, grid: NDArray[np.int32]) -> tuple[Integers, Integers]:
        """Send a row's offset to its nearest centroid."""
        labels = self.assignment.labels(grid)
        offsets = self.whitening.contribution(grid - self.references[labels], self.zooms[labels, None])
        return labels, np.column_stack([np.full(len(grid), RADIUS, dtype=np.int64), offsets])


@dataclass(frozen=True, eq=False)
class Loss:
    """The sum of squared distances to the nearest centroid, clipped at a cap, in steps of cap / RADIUS."""

    centers: Floats
    """(K, d), grid steps."""

    assignment: Assignment
    metric: Floats
    cap: float

    @property
    def shape(self) -> tuple[int, int]:
        """One number."""
        return 1, 1

    def place(self, grid: NDArray[np.int32]) -> tuple[Integers, Integers]:
        """Measure each row by elementwise operations in a fixed order, then clip: RADIUS at most."""
        labels = self.assignment.labels(grid)
        square = np.zeros(len(grid))
        for j, length in enumerate(self.metric):
            square += ((grid[:, j] - self.centers[labels, j]) * length) ** 2
        added = np.trunc(np.minimum(square / self.cap, 1.0) * RADIUS).astype(np.int64)
        return np.zeros(len(grid), dtype=np.int64), added[:, None]


def _position(keys: Integers, nodes: Integers) -> Integers:
    """Return where each key stands in sorted ``nodes``, or -1."""
    if not len(nodes):
        return np.full(len(keys), -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(nodes, keys), len(nodes) - 1)
    return np.where(nodes[at] == keys, at, -1)
