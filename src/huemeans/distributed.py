"""Tables in many parts, on any number of machines: each part is added up where it lies, and totals add up.

A table of this kind can do one thing: run a ``Job`` over all its rows and return the exact integer total.
The one who asks holds public state and totals, never a row.  Since a job is a pure function of public state
and of a part, a part that is lost can be done again: it counts once, in whichever try it is finished.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from huemeans.chunks import chunk_rows
from huemeans.domain import Domain

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LOST_PART: Final = (
    "a part of the table could not be read or added up. Nothing was released; what was entered in a ledger "
    "is spent. The workers' own logs, which may show rows, say why."
)


class Job(Protocol):
    """What is added up over rows; it travels to where they are."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the total."""
        ...

    def add(self, rows: Any, total: Integers) -> None:
        """Add rows (n, d) to a total."""
        ...


@runtime_checkable
class Distributed(Protocol):
    """A table in many parts."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the features, if they have any."""
        ...

    @property
    def shape(self) -> tuple[None, int]:
        """An unknown number of rows, and the number of features."""
        ...

    def total(self, job: Job) -> Integers:
        """Run a job over raw rows (n, d) of float64, and return its exact total."""
        ...


@dataclass(frozen=True, eq=False)
class OnGrid:
    """A job over grid rows, for raw ones."""

    domain: Domain
    job: Job

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the job."""
        return self.job.shape

    def add(self, rows: Floats, total: Integers) -> None:
        """Place rows on the grid, drop those that the public policy drops, and add the others."""
        grid, kept = self.domain.to_grid(rows)
        self.job.add(grid if kept.all() else grid[kept], total)


@dataclass(frozen=True, eq=False)
class Gridded:
    """The grid rows of a table in parts."""

    rows: Distributed
    domain: Domain

    @property
    def shape(self) -> tuple[None, int]:
        """As that of the raw rows."""
        return self.rows.shape

    def total(self, job: Job) -> Integers:
        """Run a job over grid rows."""
        return self.rows.total(OnGrid(self.domain, job))


def part_total(blocks: Iterable[Any], job: Job) -> Integers:
    """Return the total of one part, given as blocks of rows."""
    total = np.zeros(job.shape, dtype=np.int64)
    for block in blocks:
        size = chunk_rows(block.shape[1])
        for start in range(0, len(block), size):
            with np.errstate(all="ignore"):
                rows = block[start : start + size].astype(np.float64, order="C")
            job.add(rows, total)
    return total
