"""What is public about a row: feature names, bounds, the integer grid, what becomes of odd values.

Guarantees (each has a test of its name):

* the grid values of a row depend on that row and on public facts alone, to the last bit;
* once the schema is accepted (a two-dimensional numeric table with the right number of columns) no content
  of a row raises or warns;
* every grid value lies in [-2^19, 2^19], and going back to raw units is off by at most half a grid step
  and the rounding of a raw float;
* where an interval lies makes no difference, only how wide it is: 1000 to 1001 is as fine as 0 to 1.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from huemeans import checks, raw_kernels
from huemeans.chunks import chunk_rows, over_chunks
from huemeans.errors import InvalidArgument

GRID_HALF: Final = 2**19
"""Grid values reach from minus this to plus this: 20 bits and a sign-centered zero."""

Outside = Literal["clip", "drop"]
_BOUNDS_HINT: Final = "Give public limits, known without looking at the rows"


@dataclass(frozen=True, eq=False)
class Domain:
    """Public facts about the features of a row.

    Parameters
    ----------
    lower, upper : array-like of shape (n_features,)
        Public bounds in raw units.  They must not be read off the rows.
    names : sequence of str, optional
        Feature names; ``x0, x1, ...`` if not given.
    missing : {"midpoint", "drop"} or array-like of shape (n_features,)
        What a missing value (NaN) becomes: the middle of its bounds, a public constant, or the row
        is dropped.
    outside : {"clip", "drop"}
        What becomes of a value beyond its bounds, infinities included: moved to the bound, or the row is
        dropped.

    Examples
    --------
    >>> domain = Domain([1000, 0], [1001, 80], names=["year", "hours"])
    >>> grid, kept = domain.to_grid([[1000.25, float("nan")], [999.0, 1e308]])
    >>> grid.tolist(), kept.tolist()
    ([[-262144, 0], [-524288, 524288]], [True, True])
    >>> domain.to_raw(grid).tolist()
    [[1000.25, 40.0], [1000.0, 80.0]]
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    names: tuple[str, ...]
    missing: NDArray[np.float64] | None
    outside: Outside

    def __init__(
        self,
        lower: ArrayLike,
        upper: ArrayLike,
        *,
        names: Sequence[str] | None = None,
        missing: str | ArrayLike = "midpoint",
        outside: Outside = "clip",
    ) -> None:
        low, high = _bound("lower", lower), _bound("upper", upper)
        if low.shape != high.shape:
            checks.refuse("upper", f"<array of shape {high.shape}>", f"shape {low.shape}", _BOUNDS_HINT)
        _ordered(low, high)
        set_ = object.__setattr__
        set_(self, "lower", _frozen(low))
        set_(self, "upper", _frozen(high))
        set_(self, "names", _names(names, len(low)))
        set_(self, "missing", _missing(missing, low, high))
        set_(self, "outside", checks.choice("outside", outside, ("clip", "drop")))

    @classmethod
    def from_bounds(
        cls,
        bounds: Any,
        *,
        n_features: int | None = None,
        names: Sequence[str] | None = None,
        missing: str | ArrayLike = "midpoint",
        outside: Outside = "clip",
    ) -> "Domain":
        """Make a domain from one pair for all features, a (2, n_features) array, or a mapping by name.

        The array has all lower bounds in its first row and all upper bounds in its second.  One pair needs
        ``n_features`` or ``names`` to know how many features it stands for.
        """
        if isinstance(bounds, Mapping):
            low, high, names = _from_mapping(bounds, names)
        else:
            pairs = checks.real_array("bounds", bounds)
            width = n_features if n_features is not None else len(names) if names is not None else None
            if pairs.shape == (2,) and width is not None:
                pairs = np.repeat(pairs[:, None], width, axis=1)
            if pairs.ndim != 2 or len(pairs) != 2 or (width is not None and pairs.shape[1] != width):  # noqa: PLR2004
                wanted = f"an array of shape (2, {width or 'n_features'}), or (low, high) with n_features"
                checks.refuse("bounds", f"<array of shape {pairs.shape}>", wanted, _BOUNDS_HINT)
            low, high = pairs
        return cls(low, high, names=names, missing=missing, outside=outside)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.lower)

    @property
    def middle(self) -> NDArray[np.float64]:
        """The raw value at grid value zero."""
        return self.lower / 2 + self.upper / 2

    @property
    def step(self) -> NDArray[np.float64]:
        """The raw width of one grid step, per feature."""
        return (self.upper - self.lower) / (2 * GRID_HALF)

    def to_grid(self, rows: ArrayLike) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Map rows to the grid; the second result is False for rows that the public policy drops.

        A dropped row keeps its place and has zeros on the grid.
        """
        table = self._table(rows)
        grid = np.empty(table.shape, dtype=np.int32)
        kept = np.empty(len(table), dtype=bool)

        bounds = np.stack([self.lower, self.upper])
        fill = np.array(self.middle if self.missing is None else self.missing)
        drop = self.missing is None, self.outside == "drop"

        def place(part: slice) -> None:
            with np.errstate(all="ignore"):  # of this thread
                given = table[part].astype(np.float64, order="C")
            raw_kernels.place_on_grid(
                given, bounds, self.middle, self.step, fill, drop, float(GRID_HALF), grid[part], kept[part]
            )

        over_chunks(place, len(table), chunk_rows(self.n_features))
        return grid, kept

    def to_raw(self, grid: ArrayLike) -> NDArray[np.float64]:
        """Map grid values, integers or means of integers, back to raw units."""
        return self.middle + np.asarray(grid, dtype=np.float64) * self.step

    def _by_name(self, rows: ArrayLike) -> ArrayLike:
        """Take the features of a frame by name, where it has names for them; refuse another frame's."""
        columns = [column for column in getattr(rows, "columns", ()) if isinstance(column, str)]
        if not columns or self.names == tuple(f"x{j}" for j in range(self.n_features)):
            return rows
        if not set(self.names) <= set(columns):
            checks.refuse(
                "rows", f"<frame with columns {columns[:8]}>", f"columns {self.names[:8]}", "Rename them"
            )
        chosen: ArrayLike = rows[list(self.names)]  # type: ignore[call-overload,index]
        return chosen

    def _table(self, rows: ArrayLike) -> NDArray[Any]:
        """Accept the schema or raise; the message knows columns and dtype, never the number of rows."""
        given = self._by_name(rows)
        table = (
            checks.table("rows", given, width=self.n_features)
            if isinstance(given, list | tuple)
            else checks.any_array("rows", given)
        )
        if table.shape == (0,):
            table = table.reshape(0, self.n_features)
        if table.dtype.kind not in "fiub":
            found = f"<table of {checks.kind_of(table)}>"
            checks.refuse("rows", found, "a numeric dtype", "Encode words as numbers")
        if table.ndim != 2 or table.shape[1] != self.n_features:  # noqa: PLR2004
            found = f"{table.ndim}-d" if table.ndim != 2 else f"{table.shape[1]} columns"  # noqa: PLR2004
            wanted = f"two dimensions with {self.n_features} columns ({', '.join(self.names[:8])})"
            checks.refuse(
                "rows", f"<table, {found}>", wanted, "Pass one row per person, one column per feature"
            )
        return table


def _bound(name: str, value: ArrayLike) -> NDArray[np.float64]:
    array = checks.real_array(name, value)
    if array.ndim != 1 or not len(array):
        checks.refuse(name, f"<array of shape {array.shape}>", "one number per feature", _BOUNDS_HINT)
    if not np.isfinite(array).all():
        at = int(np.flatnonzero(~np.isfinite(array))[0])
        checks.refuse(f"{name}[{at}]", repr(float(array[at])), "a finite number", _BOUNDS_HINT)
    return array


def _ordered(lower: NDArray[np.float64], upper: NDArray[np.float64]) -> None:
    with np.errstate(all="ignore"):
        step = (upper - lower) / (2 * GRID_HALF)
    for at in np.flatnonzero(~((step >= np.finfo(np.float64).tiny) & np.isfinite(step))):
        pair = f"({float(lower[at])!r}, {float(upper[at])!r})"
        checks.refuse(f"bounds of feature {at}", pair, "lower below upper, with a finite width", _BOUNDS_HINT)


def _names(names: Sequence[str] | None, width: int) -> tuple[str, ...]:
    if names is not None and (isinstance(names, str) or not isinstance(names, Iterable)):
        checks.refuse("names", repr(names), f"{width} different strings", "Give one name per feature")
    chosen = tuple(f"x{j}" for j in range(width)) if names is None else tuple(names)
    if not all(isinstance(name, str) for name in chosen) or len(set(chosen)) != width or len(chosen) != width:
        checks.refuse("names", repr(chosen), f"{width} different strings", "Give one name per feature")
    return chosen


def _missing(policy: str | ArrayLike, lower: Any, upper: Any) -> NDArray[np.float64] | None:
    if isinstance(policy, str):
        return (
            None
            if checks.choice("missing", policy, ("midpoint", "drop")) == "drop"
            else lower / 2 + upper / 2
        )
    fill = checks.real_array("missing", policy)
    if fill.shape != lower.shape or not ((fill >= lower) & (fill <= upper)).all():
        expected = "one public number within the bounds per feature, 'midpoint' or 'drop'"
        checks.refuse("missing", repr(policy), expected, "Choose what stands for an unknown value")
    return _frozen(fill)


def _from_mapping(
    bounds: Mapping[str, Any], names: Sequence[str] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[str, ...]]:
    order = tuple(bounds) if names is None else tuple(names)
    if set(order) != set(bounds):
        missing, unknown = sorted(set(order) - set(bounds)), sorted(set(bounds) - set(order))
        raise InvalidArgument(
            f"bounds={{...}} is not valid: expected one pair per feature; without a pair: {missing}, "
            f"without a feature: {unknown}. {_BOUNDS_HINT}."
        )
    pairs = []
    for name in order:
        pair = checks.real_array(f"bounds[{name!r}]", bounds[name])
        checks.shaped(f"bounds[{name!r}]", pair, (2,))
        pairs.append(pair)
    low, high = np.array(pairs).T
    return low, high, order


def _frozen(array: NDArray[np.float64]) -> NDArray[np.float64]:
    array = array.copy()
    array.setflags(write=False)
    return array
