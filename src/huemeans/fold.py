"""Rows to exact integer sums, given public state: the one function that touches rows.

Every pass of a fit is a ``State``: public facts that send a grid row to a cell and to an integer vector.
``fold`` adds the vectors up, cell by cell.  Integers add up to the same whatever the order, chunk, thread
or machine, and what a row adds depends on that row and on the public state alone.

Guarantees (each has a test of its name):

* the sums are exact, and the same to the last bit for any order, any chunks and any threads;
* a row adds to one cell a vector whose length the state bounds;
* no content of a row raises or warns.

Whole numbers are held in float64 within a chunk, where every one of them stays below 2^53: a row adds at most
2^26 to any entry, so that a chunk of less than 2^26 rows adds up exactly.
"""

from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from huemeans import checks
from huemeans.box import Box
from huemeans.chunks import chunk_rows, over_chunks
from huemeans.lattice import RADIUS, Whitening
from huemeans.spool import Spool

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Cells = NDArray[np.intp]

MOMENT_RADIUS: Final = 2**13

MOST_ROWS: Final = 2**22
"""Rows of a chunk at the most, so that float64 holds its sums."""

_ROWS_A_CELL: Final = 4  # in a chunk, at least: adding up what chunks find is then a small part of the work
_GRID_BITS: Final = 19
_EXACT_BITS: Final = 52


class State(Protocol):
    """The public facts of one pass."""

    @property
    def shape(self) -> tuple[int, int]:
        """Cells and width of the sums."""
        ...

    def sums(self, rows: Floats) -> Floats:
        """Return the exact sums of a chunk of grid rows (n, d), in ``shape``."""
        ...


def fold(grid: NDArray[np.int32] | Spool, state: State) -> Integers:
    """Return the exact sums of a batch of grid rows, shape ``state.shape``."""
    total = np.zeros(state.shape, dtype=np.int64)
    lock = Lock()

    def add(part: slice) -> None:
        sums = state.sums(grid[part].astype(np.float64)).astype(np.int64)
        with lock:
            np.add(total, sums, out=total)

    size = max(chunk_rows(grid.shape[1]), _ROWS_A_CELL * state.shape[0])
    over_chunks(add, len(grid), min(size, MOST_ROWS))
    return total


def added(vectors: Floats, cells: Cells, n_cells: int) -> Floats:
    """Return the sums of vectors (n, width) by cell; cell ``n_cells`` stands for none."""
    every = np.arange(len(cells) + 1, dtype=np.int32)
    chosen = csc_array((np.ones(len(cells)), cells.astype(np.int32), every), shape=(n_cells + 1, len(cells)))
    return np.asarray((chosen @ vectors)[:n_cells])


def counted(cells: Cells, n_cells: int) -> Floats:
    """Return how many rows there are by cell, in units of RADIUS; cell ``n_cells`` stands for none."""
    return np.asarray(np.bincount(cells, minlength=n_cells + 1)[:n_cells] * float(RADIUS))


@dataclass(frozen=True, eq=False)
class Count:
    """How many rows there are, in units of RADIUS."""

    shape: tuple[int, int] = (1, 1)

    def sums(self, rows: Floats) -> Floats:
        """Send every row to the one cell."""
        return np.full((1, 1), float(len(rows) * RADIUS))


@dataclass(frozen=True, eq=False)
class Mean:
    """The sum of clipped whitened offsets from a reference; each of length RADIUS at most."""

    reference: Integers
    whitening: Whitening

    @property
    def shape(self) -> tuple[int, int]:
        """One cell."""
        return 1, len(self.reference)

    def sums(self, rows: Floats) -> Floats:
        """Whiten, clip and add."""
        return np.asarray(self._offsets(rows).sum(axis=0, keepdims=True))

    def _offsets(self, rows: Floats) -> Floats:
        one = np.zeros(len(rows), dtype=np.intp)
        return self.whitening.contributions_about(rows, self.reference[None], one)


@dataclass(frozen=True, eq=False)
class MomentSums(Mean):
    """The sum of products y_i y_j, i <= j, of whitened offsets of length MOMENT_RADIUS at most."""

    @cached_property
    def pairs(self) -> tuple[Cells, Cells]:
        """The positions i <= j."""
        return np.triu_indices(len(self.reference))

    @property
    def shape(self) -> tuple[int, int]:
        """One cell."""
        return 1, len(self.pairs[0])

    def sums(self, rows: Floats) -> Floats:
        """Whiten, clip, coarsen towards zero, multiply and add."""
        coarse = np.trunc(self._offsets(rows) * (MOMENT_RADIUS / RADIUS))
        return np.asarray((coarse.T @ coarse)[self.pairs][None])


def ruler(metric: Floats, cap: float) -> Whitening:
    """Return the diagonal map under which RADIUS^2 stands for ``cap``, as finely as stays exact."""
    if not 0 < cap < np.inf:
        checks.refuse("cap", repr(cap), "a finite length above 0", "Measure within the domain")
    scale = np.minimum(metric * (RADIUS / np.sqrt(cap)), 2.0 ** (_EXACT_BITS - 20))
    shift = int(np.clip(np.floor(_EXACT_BITS - 20 - np.log2(scale.max())), 0, _EXACT_BITS))
    return Whitening(np.diag(np.rint(scale * 2.0**shift).astype(np.int64)), shift)


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

    @cached_property
    def _places(self) -> Cells:
        """The position of each key of the level among ``nodes``, or their number."""
        places = np.full(1 << self.level, len(self.nodes), dtype=np.intp)
        places[self.nodes] = np.arange(len(self.nodes))
        return places

    def sums(self, rows: Floats) -> Floats:
        """Count a row in its cell, if that is counted."""
        return counted(self._places[self.box.keys(rows, self.level)], len(self.nodes))[:, None]


@dataclass(frozen=True, eq=False)
class LeafSums:
    """Sums of clipped whitened offsets from the references of disjoint cells, of any levels of a box."""

    box: Box
    levels: Integers
    """(m,): each cell's level."""

    nodes: Integers
    """(m,): each cell's key at its level."""

    references: Integers
    """(m, d)."""

    whitenings: dict[int, Whitening]
    """By level."""

    @property
    def shape(self) -> tuple[int, int]:
        """One sum a cell."""
        return self.references.shape

    @cached_property
    def _places(self) -> Cells:
        """The position of the cell that each key of the deepest level lies in, or the number of cells."""
        places = np.full(1 << self.box.depth, len(self.nodes), dtype=np.intp)
        sizes = 1 << (self.box.depth - self.levels)
        starts = np.repeat(self.nodes * sizes, sizes)
        within = np.arange(len(starts)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        places[starts + within] = np.repeat(np.arange(len(self.nodes)), sizes)
        return places

    def sums(self, rows: Floats) -> Floats:
        """Add a row's offset to its cell, if there is one."""
        found = self._places[self.box.keys(rows, self.box.depth)]
        levels = np.append(self.levels, -1)[found]
        offsets = np.zeros(rows.shape)
        for level, whitening in self.whitenings.items():
            here = np.flatnonzero(levels == level)
            offsets[here] = whitening.contributions_about(rows[here], self.references, found[here])
        return added(offsets, found, len(self.nodes))


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
        self._levels = np.rint((slopes * centers).sum(axis=1) * scale / 2)[:, None]

    def labels(self, rows: Floats) -> Cells:
        """Return the nearest centroid of each grid row of a chunk; of several, the first."""
        scores = self._slopes @ rows.T
        scores -= self._levels
        return np.asarray(scores.argmax(axis=0))

    def all_labels(self, grid: NDArray[np.int32]) -> Cells:
        """Return the nearest centroid of each grid row of a table."""
        size = chunk_rows(grid.shape[1])
        parts = over_chunks(lambda part: self.labels(grid[part].astype(np.float64)), len(grid), size)
        return np.concatenate([np.empty(0, dtype=np.intp), *parts])


@dataclass(frozen=True, eq=False)
class Distances:
    """Counts of rows by squared distance from the nearest of some references, in units of RADIUS."""

    references: Integers
    """(k, d)."""

    assignment: Assignment | None
    """What tells which is the nearest; None where there is one."""

    metric: Floats
    edges: Floats
    """(bins,): growing squared lengths, in metric units; no row lies beyond the last."""

    @property
    def shape(self) -> tuple[int, int]:
        """One count a bin."""
        return len(self.edges), 1

    @cached_property
    def _whitening(self) -> Whitening:
        return ruler(self.metric, float(self.edges[-1]))

    def sums(self, rows: Floats) -> Floats:
        """Measure each row in integers and count it in its bin."""
        nearest = (
            np.zeros(len(rows), dtype=np.intp) if self.assignment is None else self.assignment.labels(rows)
        )
        squares = self._whitening.squares_about(rows, self.references, nearest)
        borders = np.rint(self.edges / self.edges[-1] * RADIUS**2)
        return counted(np.searchsorted(borders, squares), len(borders))[:, None]


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

    def sums(self, rows: Floats) -> Floats:
        """Count a row at its nearest centroid, and add its offset there."""
        labels = self.assignment.labels(rows)
        offsets = self.whitening.contributions_about(rows, self.references, labels, self.zooms)
        k = len(self.references)
        return np.column_stack([counted(labels, k), added(offsets, labels, k)])


@dataclass(frozen=True, eq=False)
class Loss:
    """The sum of squared distances to the nearest centroid, clipped at a cap, in steps of cap / RADIUS."""

    references: Integers
    """(K, d): the centroids, rounded to the grid."""

    assignment: Assignment
    metric: Floats
    cap: float

    @property
    def shape(self) -> tuple[int, int]:
        """One number."""
        return 1, 1

    @cached_property
    def _whitening(self) -> Whitening:
        return ruler(self.metric, self.cap)

    def sums(self, rows: Floats) -> Floats:
        """Measure each row in integers, squares up to RADIUS^2 exactly and longer ones as RADIUS^2."""
        labels = self.assignment.labels(rows)
        squares = self._whitening.squares_about(rows, self.references, labels)
        return np.full((1, 1), np.trunc(squares / RADIUS).sum())
