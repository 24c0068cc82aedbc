"""No person counts with more than a given number of rows.

Which rows of a person are kept depends on that person's rows alone, and on nothing but their content: those
that come first by a fixed hash.  So removing a person removes just those rows, whatever their order or place.
"""

from collections.abc import Iterable
from numbers import Number
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from huemeans import checks

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def limited_rows(table: NDArray[np.float64], person: ArrayLike, most: int) -> NDArray[np.float64]:
    """Return the rows of ``table`` (n, d) with at most ``most`` of each person.

    A row without a person (None, NaN, NaT, masked) is left out, by itself.
    """
    code, present = person_codes(person)
    if code.shape != table.shape[:1]:
        checks.refuse("person", "<another length>", "one entry per row", "Say whose each row is")
    table, code = table[present], code[present]
    order = np.lexsort((content_hash(table), code))
    sorted_code = code[order]
    starts = np.flatnonzero(np.diff(sorted_code, prepend=-1))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return table[np.sort(order[rank < most])]


def person_codes(person: ArrayLike) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return a number for each person, equal for equal entries, and which entries are there at all.

    Entries are one person if they are equal as Python's own objects, 7 and 7.0 but not 7 and "7", whatever
    the others are.  What cannot be told from others is nobody.
    """
    values, present = _entries(person)
    code = np.full(values.shape, -1, dtype=np.intp)
    if values.dtype.kind != "O":
        code[present] = np.unique(values[present], return_inverse=True)[1]
        return code, present
    seen: dict[Any, int] = {}
    for at in np.flatnonzero(present):
        try:
            code[at] = seen.setdefault(_plain(values[at]), len(seen))
        except Exception:  # noqa: BLE001  # an entry that cannot be hashed or compared
            present[at] = False
    return code, present


def _entries(person: ArrayLike) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the entries, (n,), as they are, and which are present."""
    masked = np.ma.getmaskarray(person) if isinstance(person, np.ma.MaskedArray) else False
    if isinstance(person, np.ndarray) and person.dtype.kind != "O":
        values = np.asarray(person)
        missing = values != values  # noqa: PLR0124  # NaN and NaT
    else:
        given = person.to_pylist() if hasattr(person, "to_pylist") else person
        listed = list(given) if isinstance(given, Iterable) else []
        values = np.empty(len(listed), dtype=object)
        for at, value in enumerate(listed):
            values[at] = value
        missing = np.array([_is_missing(value) for value in listed], dtype=bool)
    return values, ~(missing | masked)


def _is_missing(value: Any) -> bool:
    if value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType"):
        return True
    try:
        return isinstance(value, Number | np.generic) and bool(value != value)  # noqa: PLR0124
    except Exception:  # noqa: BLE001  # a signaling NaN
        return True


def _plain(value: Any) -> Any:
    """Return an entry as one of Python's own objects; a time as nanoseconds, whatever its unit."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return value.dtype.kind, int(value.astype(f"{value.dtype.kind}8[ns]").astype(np.int64))
    return value.item() if isinstance(value, np.generic) else value


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
