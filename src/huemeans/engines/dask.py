"""Dask tables: every pass is one job, a task for each part and a tree of additions.

A part is read again in every pass, so memory is bounded by parts; ``X.persist()`` beforehand keeps the rows
in the workers' memory.  A worker that dies takes its tasks with it, and Dask runs them again: a total is
asked for by the name of its task, so none counts twice.
"""

from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from dask import array, dataframe
from dask.base import compute
from dask.delayed import delayed
from numpy.typing import NDArray

from huemeans import checks
from huemeans.distributed import LOST_PART, Job, part_total
from huemeans.errors import HuemeansError
from huemeans.frames import plain

Integers = NDArray[np.int64]

_BRANCHES: Final = 8
"""Totals that one task of the tree adds up."""


@dataclass(frozen=True, eq=False)
class DaskTable:
    """The parts of a Dask array or data frame."""

    parts: list[Any]
    names: tuple[str, ...] | None
    width: int

    @classmethod
    def of(cls, table: Any) -> Self:
        """Take a table, or refuse what is none, by its schema."""
        if isinstance(table, array.Array):
            if table.ndim != 2 or table.dtype.kind not in "fiub":  # noqa: PLR2004
                found = f"<Dask array of {table.dtype} in {table.ndim} dimensions>"
                checks.refuse("X", found, "numbers in rows and columns", "Pass one row per record")
            whole = table.rechunk({1: -1})
            return cls(list(whole.to_delayed().ravel()), None, int(table.shape[1]))
        if not isinstance(table, dataframe.DataFrame):
            checks.refuse("X", f"<{type(table).__name__}>", "a Dask DataFrame or Array", "Convert it first")
        odd = [str(name) for name, kind in table.dtypes.items() if getattr(kind, "kind", "O") not in "fiub"]
        if odd:
            checks.refuse("X", f"<columns {odd[:8]}>", "a numeric dtype", "Encode words as numbers")
        names = tuple(str(name) for name in table.columns)
        return cls(list(table.to_delayed()), names, len(names))

    @property
    def shape(self) -> tuple[None, int]:
        """An unknown number of rows, and the number of features."""
        return None, self.width

    def total(self, job: Job) -> Integers:
        """Run one job: a task for each part, then a tree of exact additions."""
        totals = [delayed(_total)(part, delayed(job)) for part in self.parts]
        while len(totals) > 1:
            groups = (totals[at : at + _BRANCHES] for at in range(0, len(totals), _BRANCHES))
            totals = [delayed(_added)(group) for group in groups]
        if not totals:
            return np.zeros(job.shape, dtype=np.int64)
        try:
            [found] = compute(totals[0])
        except Exception:  # noqa: BLE001  # its text may quote a row
            found = None
        if found is None:  # outside the handler, so that nothing is chained
            raise HuemeansError(LOST_PART)
        return np.asarray(found)


def _total(part: Any, job: Job) -> Integers:
    return part_total([np.asarray(plain(part))], job)


def _added(totals: list[Integers]) -> Integers:
    whole = totals[0].copy()
    for total in totals[1:]:
        whole += total
    return whole
