"""No person counts with more than a given number of rows.

Which rows of a person are kept depends on that person's rows alone, and on nothing but their content: those
that come first by a fixed hash.  So removing a person removes just those rows, whatever their order or place.
"""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from huemeans import checks

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def limited_rows(table: NDArray[np.float64], person: ArrayLike, most: int) -> NDArray[np.float64]:
    """Return the rows of ``table`` (n, d) with at most ``most`` of each person."""
    who = checks.any_array("person", person)
    if who.shape != table.shape[:1]:
        checks.refuse("person", "<another length>", "one entry per row", "Say whose each row is")
    _, code = np.unique(who, return_inverse=True)
    order = np.lexsort((content_hash(table), code))
    sorted_code = code[order]
    starts = np.flatnonzero(np.diff(sorted_code, prepend=-1))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return table[np.sort(order[rank < most])]


def content_hash(table: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return a fixed hash of each row's content (splitmix64 over the bits of its values)."""
    values = np.where(np.isnan(table), np.nan, table) + 0.0  # one NaN, one zero
    total = np.zeros(len(table), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for column in values.T:
            z = total + np.ascontiguousarray(column).view(np.uint64) + _GOLDEN
            z = (z ^ (z >> np.uint64(30))) * _MIX[0]
            z = (z ^ (z >> np.uint64(27))) * _MIX[1]
            total = z ^ (z >> np.uint64(31))
    return total
