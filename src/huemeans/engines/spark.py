"""Spark tables: every pass is one job, ``mapInArrow`` over the parts and a tree of exact additions.

An executor that dies takes its tasks with it, and Spark runs them again on other executors; of several tries
of one task it takes one.  ``X.cache()`` beforehand keeps the rows in the executors' memory.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import functions, types

from huemeans import checks
from huemeans.distributed import LOST_PART, Job, part_total
from huemeans.errors import HuemeansError

Integers = NDArray[np.int64]

_SCHEMA: Final = "total binary"


@dataclass(frozen=True, eq=False)
class SparkTable:
    """A Spark data frame of numbers."""

    frame: Any
    names: tuple[str, ...]

    @classmethod
    def of(cls, frame: Any) -> Self:
        """Take a data frame, or refuse what is none, by its schema."""
        fields = getattr(getattr(frame, "schema", None), "fields", None)
        if fields is None or not hasattr(frame, "mapInArrow"):
            checks.refuse("X", f"<{type(frame).__name__}>", "a Spark DataFrame", "Convert it first")
        odd = [f.name for f in fields if not isinstance(f.dataType, types.NumericType | types.BooleanType)]
        if odd or not fields:
            checks.refuse("X", f"<columns {odd[:8]}>", "numeric columns", "Encode words as numbers")
        columns = [functions.col(f"`{f.name}`").cast("double").alias(f.name) for f in fields]
        return cls(frame.select(*columns), tuple(f.name for f in fields))

    @property
    def shape(self) -> tuple[None, int]:
        """An unknown number of rows, and the number of features."""
        return None, len(self.names)

    def total(self, job: Job) -> Integers:
        """Run one job: each part gives its total, and totals are added up in a tree."""
        totals = self.frame.mapInArrow(_of_part(job), _SCHEMA).rdd.map(_content)
        nothing = np.zeros(job.shape, dtype=np.int64)
        try:
            found = totals.treeAggregate(nothing.tobytes(), _added, _added)
        except Exception:  # noqa: BLE001  # its text may quote a row
            found = None
        if found is None:  # outside the handler, so that nothing is chained
            raise HuemeansError(LOST_PART)
        return np.frombuffer(found, dtype=np.int64).reshape(job.shape).copy()


def _of_part(job: Job) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def totals(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total = part_total((_rows(batch) for batch in batches), job)
        yield pa.RecordBatch.from_arrays([pa.array([total.tobytes()], pa.binary())], names=["total"])

    return totals


def _rows(batch: pa.RecordBatch) -> NDArray[np.float64]:
    columns = [column.to_numpy(zero_copy_only=False).astype(np.float64) for column in batch.columns]
    return np.column_stack(columns)


def _content(row: Any) -> bytes:
    return bytes(row[0])


def _added(one: bytes, other: bytes) -> bytes:
    return bytes((np.frombuffer(one, dtype=np.int64) + np.frombuffer(other, dtype=np.int64)).tobytes())
