"""What a fit takes besides arrays: files, Arrow tables and datasets, tables in Dask or Spark."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import dataset

from huemeans import checks
from huemeans.distributed import Distributed
from huemeans.engines import distributed
from huemeans.sources import ArrowTable, open_table
from huemeans.spool import LazyTable


def source_of(X: Any) -> LazyTable | Distributed | None:
    """Return a table that is not in memory as rows yet; None for arrays, frames and lists."""
    if not hasattr(X, "dtypes") and isinstance(X, LazyTable | Distributed):  # a frame may have such columns
        return X
    if isinstance(X, str | Path):
        return open_table(X)
    if isinstance(X, pa.RecordBatchReader | Iterator):
        checks.refuse(
            "X",
            f"<{type(X).__name__}>",
            "a table that can be read again, for a fit reads it several times",
            "Pass a Table, a Dataset or a path",
        )
    if isinstance(X, pa.Table | pa.RecordBatch | dataset.Dataset):
        return ArrowTable.of(X)
    if not hasattr(X, "__array__") and hasattr(X, "__arrow_c_stream__"):
        return ArrowTable.of(pa.table(X))
    return distributed(X)
