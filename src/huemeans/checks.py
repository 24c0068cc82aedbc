"""Checks of public arguments: each error names the argument, its value, what was expected, what to do."""

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from huemeans.errors import InvalidArgument

EPSILON_HINT = "0.1 is strong, 1 is common, 10 is weak"
_ROUNDING = 1e-10
_LARGEST = 1e300
DELTA_HINT = "take less than one over the number of people, such as 1e-6"


def refuse(name: str, found: str, expected: str, remedy: str) -> NoReturn:
    """Raise the one kind of message that this package has for a bad argument."""
    raise InvalidArgument(f"{name}={found} is not valid: expected {expected}. {remedy}.")


def number(name: str, value: Any, *, above: float, expected: str, remedy: str) -> float:
    """Return ``value`` as a finite float strictly above ``above``, or raise."""
    if isinstance(value, bool) or not isinstance(value, Real):
        refuse(name, repr(value), expected, remedy)
    result = float(value)
    if not math.isfinite(result) or result <= above:
        refuse(name, repr(value), expected, remedy)
    return result


def epsilon(value: Any) -> float:
    """Return a finite epsilon above 0, or raise."""
    return number("epsilon", value, above=0, expected="a finite number above 0", remedy=_hint(EPSILON_HINT))


def delta(value: Any) -> float:
    """Return a delta strictly between 0 and 1, or raise."""
    expected, remedy = "a number strictly between 0 and 1", _hint(DELTA_HINT)
    result = number("delta", value, above=0, expected=expected, remedy=remedy)
    if result >= 1:
        refuse("delta", repr(value), expected, remedy)
    return result


def integer(name: str, value: Any, *, least: int, remedy: str, most: int | None = None) -> int:
    """Return ``value`` as an int of at least ``least`` and at most ``most``, or raise."""
    whole = not isinstance(value, bool) and isinstance(value, Integral)
    if not whole or int(value) < least or (most is not None and int(value) > most):
        upper = "" if most is None else f" and at most {most}"
        refuse(name, repr(value), f"a whole number of at least {least}{upper}", remedy)
    return int(value)


def choice(name: str, value: Any, options: Sequence[str]) -> str:
    """Return ``value`` if it is one of ``options``, or raise."""
    if not isinstance(value, str) or value not in options:
        refuse(name, repr(value), "one of " + ", ".join(map(repr, options)), "Choose one of these words")
    return value


def public_array(name: str, value: Any, *, above: float, expected: str, remedy: str) -> NDArray[np.float64]:
    """Return a number or array of finite floats above ``above``; errors quote lone numbers only."""
    found = repr(value) if np.isscalar(value) or value is None else f"<{type(value).__name__}>"
    array = real_array(name, value, found=found)
    if not (np.isfinite(array) & (array > above)).all():
        refuse(name, found, expected, remedy)
    return array


def real_array(name: str, value: ArrayLike, *, found: str | None = None) -> NDArray[np.float64]:
    """Return ``value`` as a float64 array if its dtype is real and numeric; its content is never quoted."""
    array = any_array(name, value)
    if array.dtype.kind not in "fiu":
        shown = found or f"<array of {kind_of(array)}>"
        refuse(name, shown, "real numbers (float or integer dtype)", "Convert it to numbers first")
    with np.errstate(all="ignore"):
        return array.astype(np.float64)


def any_array(name: str, value: ArrayLike) -> NDArray[Any]:
    """Return ``value`` as an array, masked cells as NaN; a ragged list is refused without its sizes."""
    with quiet():
        if isinstance(value, np.ma.MaskedArray):
            numeric = value.dtype.kind in "fiub"
            return np.asarray(np.ma.filled(value.astype(np.float64), np.nan) if numeric else value.data)
        try:
            array = np.asarray(value)
        except (ValueError, TypeError, OverflowError):
            array = None
    if array is None:  # outside the handler, so that no original message with sizes is chained
        refuse(name, "<not an array>", "rows of equal length", "Give every row a value for every feature")
    return array


def table(
    name: str, value: ArrayLike, *, width: int | None = None, finite: bool = False
) -> NDArray[np.float64]:
    """Return rows as float64 (n, d), or raise; the message holds neither a value nor the number of rows.

    Arrays and frames are accepted or refused by their schema.  A list has none: its first row says how many
    columns there are if ``width`` does not, and what is no number, or a row of another length, is missing.
    """
    array = _listed(value, width) if isinstance(value, list | tuple) else any_array(name, value)
    if array.dtype.kind not in "fiub":
        refuse(name, f"<table of {kind_of(array)}>", "a numeric dtype", "Encode words as numbers")
    if array.ndim != 2 or not array.shape[1]:  # noqa: PLR2004
        refuse(name, f"<table in {array.ndim} dimensions>", "rows and columns", "Pass one row per record")
    with quiet():
        rows = array.astype(np.float64, copy=False)
    if finite and not np.isfinite(rows).all():
        refuse(name, "<table with NaN or infinity>", "finite numbers", "Drop or fill such cells first")
    return rows


def _listed(rows: Sequence[Any], width: int | None) -> NDArray[np.float64]:
    """Return a list of rows as numbers, each row by itself; a list of no rows is (n,)."""
    if width is None:
        width = len(rows[0]) if len(rows) and isinstance(rows[0], Sequence | np.ndarray) else 0
    array = np.full((len(rows), width) if width else len(rows), np.nan)
    with quiet():
        for at, row in enumerate(rows if width else ()):
            if isinstance(row, Sequence | np.ndarray) and not isinstance(row, str) and len(row) == width:
                array[at] = [_cell(cell) for cell in row]
    return array


def _cell(value: Any) -> float:
    """Return a cell as a number; what is none is missing, what is too large infinite."""
    if value is np.ma.masked or isinstance(value, complex | np.complexfloating | np.ndarray):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except Exception:  # noqa: BLE001  # whatever a cell does, it is that row's value and no error
        return math.nan


@contextmanager
def quiet() -> Iterator[None]:
    """Let no content of a row warn."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def kind_of(array: NDArray[Any]) -> str:
    """Name the kind of an array's values in a word that depends on no value's length."""
    kinds = {"U": "text", "S": "bytes", "O": "Python objects", "c": "complex numbers", "b": "booleans"}
    return kinds.get(array.dtype.kind, "dates" if array.dtype.kind in "mM" else "no numbers")


def shaped(name: str, array: NDArray[Any], shape: tuple[int | str, ...]) -> None:
    """Raise unless ``array`` has ``shape``, where a string stands for any size."""
    fits = array.ndim == len(shape) and all(
        isinstance(want, str) or want == have for want, have in zip(shape, array.shape, strict=True)
    )
    if not fits:
        wanted = "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"
        refuse(name, f"<array of shape {array.shape}>", f"shape {wanted}", "Reshape it")


def width(name: str, rows: NDArray[Any], features: int) -> None:
    """Raise unless ``rows`` are (n, features); the message does not say how many there are."""
    if rows.ndim != 2 or rows.shape[1] != features:  # noqa: PLR2004
        found = f"{rows.shape[1]} columns" if rows.ndim == 2 else f"{rows.ndim} dimensions"  # noqa: PLR2004
        refuse(name, f"<table of {found}>", f"{features} columns", "Pass one column per feature")


def covariance_like(name: str, matrix: NDArray[np.float64], size: int | None = None) -> NDArray[np.float64]:
    """Return a square, finite matrix symmetrized, or raise; no entry is quoted, for it may be private.

    Entries too large for the diagonal already show a negative eigenvalue; the others are the caller's.
    """
    shape = (len(matrix), len(matrix)) if size is None and matrix.ndim else (size, size)
    if matrix.shape != shape or not matrix.size:
        wanted = "(d, d)" if size is None else f"({size}, {size})"
        _refuse_matrix(name, matrix, f"a square matrix, {wanted}", "Pass one row and column per feature")
    if not np.isfinite(matrix).all():
        _refuse_matrix(name, matrix, "finite entries", "Remove NaN and infinities")
    if (np.abs(matrix) > _LARGEST).any():
        _refuse_matrix(name, matrix, f"entries of at most {_LARGEST}", "Use other units")
    deviation = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    scale = deviation[:, None] * deviation
    if (np.abs(matrix - matrix.T) > _ROUNDING * scale).any():
        _refuse_matrix(name, matrix, "a symmetric matrix", "Pass (S + S.T) / 2 if the difference is rounding")
    if (np.abs(matrix) > (1 + _ROUNDING) * scale).any():
        refuse_negative(name, matrix)
    return np.asarray((matrix + matrix.T) / 2)


def refuse_negative(name: str, matrix: NDArray[np.float64]) -> NoReturn:
    """Refuse a matrix that has a negative eigenvalue."""
    _refuse_matrix(
        name, matrix, "a matrix without negative eigenvalues", "Pass a positive semidefinite matrix"
    )


def _refuse_matrix(name: str, matrix: NDArray[np.float64], expected: str, remedy: str) -> NoReturn:
    refuse(name, f"<array of shape {matrix.shape}>", expected, remedy)


def _hint(text: str) -> str:
    return text[0].upper() + text[1:]
