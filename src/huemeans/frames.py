"""Frames as arrays, of a type that their schema decides and no cell: what is missing is NaN."""

from typing import Any

import numpy as np

from huemeans.sources import columns_of, holds_numbers


def plain(X: Any) -> Any:
    """Return a frame of numbers that is not an array of one plain type as float64; anything else as it is."""
    if hasattr(X, "iloc"):  # pandas, with types that know of missing cells
        kinds = list(X.dtypes)
        if all(getattr(kind, "kind", "O") in "fiub" for kind in kinds) and not all(
            isinstance(kind, np.dtype) for kind in kinds
        ):
            return X.to_numpy(dtype=np.float64, na_value=np.nan)
    elif callable(getattr(X, "to_arrow", None)):  # polars
        table = X.to_arrow()
        if len(table.schema) and all(holds_numbers(one.type) for one in table.schema):
            return columns_of(table.combine_chunks())
    return X
