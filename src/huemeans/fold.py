"""Rows to exact integer totals, given public state: the one function that touches rows.

Every pass of a fit is a ``State``: public facts by which a grid row adds integers to a table of totals.
Integers add up to the same whatever the order, chunk, thread or machine, and what a row adds depends on that
row and on the public state alone.  ``State.released`` turns the totals of all rows into the vector that noise
is added to.

Guarantees (each has a test of its name):

* totals are exact, the same to the last bit for any order, any chunks and any threads, and those of several
  batches add up to those of all;
* a row moves one cell of what is released, by no more than the state's bound;
* no content of a row raises or warns.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from huemeans import checks, kernels
from huemeans.box import Box
from huemeans.chunks import added_up, chunk_rows, over_chunks
from huemeans.distributed import Gridded
from huemeans.lattice import MOST_OFFSET, RADIUS, Whitening
from huemeans.regions import Regions
from huemeans.spool import Spool

Rows = NDArray[np.int32]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOMENT_RADIUS: Final = 2**13

_GRID_BITS: Final = 19
_EXACT_BITS: Final = 52


class State(Protocol):
    """The public facts of one pass."""

    @property
    def shape(self) -> tuple[int, int]:
        """Of the totals."""
        ...

    def add(self, rows: Rows, total: Integers) -> None:
        """Add a chunk of grid rows (n, d) to totals."""
        ...

    def released(self, total: Integers) -> Integers:
        """Return the vector, by cells, that the totals of all rows stand for."""
        ...


def fold(grid: Rows | Spool | Gridded, state: State) -> Integers:
    """Return the exact totals of a batch of grid rows, of ``state.shape``.

    What a state derives from its public facts is derived here, once, and not by each thread or machine.
    """
    state.add(np.empty((0, grid.shape[1]), dtype=np.int32), np.zeros(state.shape, dtype=np.int64))
    if isinstance(grid, Gridded):
        return grid.total(state)

    def add(part: slice, total: Integers) -> None:
        state.add(np.ascontiguousarray(grid[part], dtype=np.int32), total)

    return added_up(add, len(grid), chunk_rows(grid.shape[1]), state.shape)


@dataclass(frozen=True, eq=False)
class Count:
    """How many rows there are, in units of RADIUS."""

    shape: tuple[int, int] = (1, 1)

    def add(self, rows: Rows, total: Integers) -> None:
        """Send every row to the one cell."""
        total += len(rows)

    def released(self, total: Integers) -> Integers:
        """Count in units of RADIUS."""
        return total * RADIUS


@dataclass(frozen=True, eq=False)
class Mean:
    """The sum of clipped whitened offsets from a reference: a row moves it by RADIUS at most."""

    reference: Integers
    whitening: Whitening

    @cached_property
    def _region(self) -> Regions:
        return Regions(self.reference[None], [self.whitening], np.zeros(1, dtype=np.int64))

    @property
    def shape(self) -> tuple[int, int]:
        """One cell."""
        return self._region.shape

    def add(self, rows: Rows, total: Integers) -> None:
        """Add every row to the one cell."""
        self._region.add(rows, np.zeros(len(rows), dtype=np.int64), total)

    def released(self, total: Integers) -> Integers:
        """Return one sum."""
        return self._region.sums(total)


@dataclass(frozen=True, eq=False)
class MomentSums:
    """The sum of products y_i y_j, i <= j, of scaled offsets y of length MOMENT_RADIUS at most."""

    reference: Integers
    whitening: Whitening
    """A diagonal one."""

    @cached_property
    def pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The positions i <= j."""
        return np.triu_indices(len(self.reference))

    @cached_property
    def _scales(self) -> Floats:
        return scales_of(self.whitening)

    @property
    def shape(self) -> tuple[int, int]:
        """One cell."""
        return 1, len(self.pairs[0])

    def add(self, rows: Rows, total: Integers) -> None:
        """Scale, clip, coarsen towards zero, multiply and add: below 2^53 for 2^27 rows."""
        d = len(self.reference)
        checks.width("rows", rows, d)
        sums, reference = np.zeros((d, d)), self.reference.astype(np.float64)
        kernels.add_products(rows, reference, self._scales, float(RADIUS), MOMENT_RADIUS / RADIUS, sums)
        total += sums[self.pairs].astype(np.int64)

    def released(self, total: Integers) -> Integers:
        """Return all products."""
        return total


def ruler(metric: Floats, cap: float) -> Whitening:
    """Return the diagonal map under which RADIUS^2 stands for ``cap``, as finely as stays exact."""
    if not 0 < cap < np.inf:
        checks.refuse("cap", repr(cap), "a finite length above 0", "Measure within the domain")
    scale = np.minimum(metric * (RADIUS / np.sqrt(cap)), 2.0 ** (_EXACT_BITS - 20))
    shift = int(np.clip(np.floor(_EXACT_BITS - 20 - np.log2(scale.max())), 0, _EXACT_BITS))
    return Whitening(np.diag(np.rint(scale * 2.0**shift).astype(np.int64)), shift)


def scales_of(whitening: Whitening) -> Floats:
    """Return the diagonal of a diagonal whitening."""
    scales = np.diag(whitening.scaled)
    if np.count_nonzero(whitening.matrix) > len(scales):
        checks.refuse("whitening", "<W>", "a diagonal W", "Clip to a ball")
    return np.ascontiguousarray(scales)


@dataclass(frozen=True, eq=False)
class CellCounts:
    """Counts of all cells of the deepest level of a box: they hold those of every level above."""

    box: Box

    @property
    def shape(self) -> tuple[int, int]:
        """One count a cell."""
        return 1 << self.box.depth, 1

    def add(self, rows: Rows, total: Integers) -> None:
        """Count a row in its cell."""
        kernels.add_counts(self.box.keys(rows, self.box.depth), total[:, 0])

    def released(self, total: Integers) -> Integers:
        """Count in units of RADIUS."""
        return total * RADIUS

    def at(self, released: Integers, level: int, nodes: Integers) -> Integers:
        """Return the counts of chosen cells of one level, in units of RADIUS."""
        return np.asarray(released.reshape(1 << level, -1).sum(axis=1)[nodes])


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
        """One row a cell."""
        return self._regions.shape

    @cached_property
    def _regions(self) -> Regions:
        order = sorted(self.whitenings)
        shapes = [self.whitenings[level] for level in order]
        return Regions(self.references, shapes, np.searchsorted(order, self.levels))

    @cached_property
    def _places(self) -> Integers:
        """The position of the cell that each key of the deepest level lies in, or the number of cells."""
        places = np.full(1 << self.box.depth, len(self.nodes), dtype=np.int64)
        sizes = 1 << (self.box.depth - self.levels)
        starts = np.repeat(self.nodes * sizes, sizes)
        within = np.arange(len(starts)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        places[starts + within] = np.repeat(np.arange(len(self.nodes)), sizes)
        return places

    def add(self, rows: Rows, total: Integers) -> None:
        """Add a row's offset to its cell, if there is one."""
        self._regions.add(rows, self._places[self.box.keys(rows, self.box.depth)], total)

    def released(self, total: Integers) -> Integers:
        """Return one sum a cell."""
        return self._regions.sums(total)


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
        self._slopes = np.ascontiguousarray(np.rint(slopes * scale))
        self._levels = np.rint((slopes * centers).sum(axis=1) * scale / 2)

    def labels(self, rows: Rows) -> Integers:
        """Return the nearest centroid of each grid row of a chunk; of several, the first."""
        checks.width("rows", rows, self._slopes.shape[1])
        found = np.empty(len(rows), dtype=np.int64)
        kernels.nearest(rows, self._slopes, self._levels, found)
        return found

    def all_labels(self, grid: Rows) -> Integers:
        """Return the nearest centroid of each grid row of a table."""
        size = chunk_rows(grid.shape[1])
        parts = over_chunks(lambda part: self.labels(np.ascontiguousarray(grid[part])), len(grid), size)
        return np.concatenate([np.empty(0, dtype=np.int64), *parts])


@dataclass(frozen=True, eq=False)
class _Measured:
    """Squared distances from the nearest of some references, in integers."""

    references: Integers
    """(k, d)."""

    assignment: Assignment | None
    """What tells which is the nearest; None where there is one."""

    metric: Floats

    def __post_init__(self) -> None:
        """Assert that offsets are exact, on public state."""
        if not (np.abs(self.references) <= MOST_OFFSET // 2).all():
            checks.refuse("references", "<array>", "grid values", "Clip them to the grid")

    @property
    def _cap(self) -> float:
        """The squared length, in metric units, that RADIUS^2 stands for."""
        raise NotImplementedError

    @cached_property
    def _scales(self) -> Floats:
        return scales_of(ruler(self.metric, self._cap))

    def squares(self, rows: Rows) -> Floats:
        """Return squared distances of a chunk of rows; RADIUS^2 stands for the cap and for what is beyond."""
        checks.width("rows", rows, self.references.shape[1])
        labels = (
            np.zeros(len(rows), dtype=np.int64) if self.assignment is None else self.assignment.labels(rows)
        )
        found = np.empty(len(rows))
        references = self.references.astype(np.float64)
        kernels.squares(rows, labels, references, self._scales, float(RADIUS**2), found)
        return found


@dataclass(frozen=True, eq=False)
class Distances(_Measured):
    """Counts of rows by squared distance from the nearest of some references, in units of RADIUS."""

    edges: Floats
    """(bins,): growing squared lengths, in metric units; no row lies beyond the last."""

    @property
    def _cap(self) -> float:
        return float(self.edges[-1])

    @property
    def shape(self) -> tuple[int, int]:
        """One count a bin."""
        return len(self.edges), 1

    def add(self, rows: Rows, total: Integers) -> None:
        """Measure each row in integers and count it in its bin."""
        borders = np.rint(self.edges / self.edges[-1] * RADIUS**2)
        bins = np.searchsorted(borders, self.squares(rows))
        kernels.add_counts(bins, total[:, 0])

    def released(self, total: Integers) -> Integers:
        """Count in units of RADIUS."""
        return total * RADIUS


@dataclass(frozen=True, eq=False)
class Lloyd:
    """Counts and clipped whitened offset sums of the rows nearest to each centroid: (RADIUS, y)."""

    references: Integers
    """(K, d): the centroids, rounded to the grid."""

    assignment: Assignment
    whitening: Whitening
    zooms: Integers
    """(K,): how many times smaller the clip region about each centroid is drawn, in units of 1 / ZOOM."""

    @cached_property
    def _regions(self) -> Regions:
        one = np.zeros(len(self.references), dtype=np.int64)
        return Regions(self.references, [self.whitening], one, self.zooms)

    @property
    def shape(self) -> tuple[int, int]:
        """One row for each centroid."""
        return self._regions.shape

    def add(self, rows: Rows, total: Integers) -> None:
        """Count a row at its nearest centroid, and add its offset there."""
        self._regions.add(rows, self.assignment.labels(rows), total)

    def released(self, total: Integers) -> Integers:
        """Return a count, in units of RADIUS, and a sum for each centroid."""
        return np.column_stack([total[:, 0] * RADIUS, self._regions.sums(total)])


@dataclass(frozen=True, eq=False)
class Loss(_Measured):
    """The sum of squared distances to the nearest centroid, clipped at a cap, in steps of cap / RADIUS."""

    cap: float

    @property
    def _cap(self) -> float:
        return self.cap

    @property
    def shape(self) -> tuple[int, int]:
        """One number."""
        return 1, 1

    def add(self, rows: Rows, total: Integers) -> None:
        """Measure each row in integers."""
        total += np.trunc(self.squares(rows) / RADIUS).astype(np.int64).sum()

    def released(self, total: Integers) -> Integers:
        """Return one sum."""
        return total
