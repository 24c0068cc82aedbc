"""How loops over rows are compiled: at their first call, and kept on disk for the next process."""

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])

_ANY_ORDER: Final = {"contract", "reassoc", "nsz"}


def compiled(*, any_order: bool) -> Callable[[Function], Function]:
    """Compile a function at its first call; keep what was compiled on disk, where that is possible.

    With ``any_order`` its sums may be reassociated and fused: for exact whole numbers that changes nothing.
    """
    options: Any = {"nogil": True, "error_model": "numpy", "fastmath": _ANY_ORDER if any_order else False}

    def decorate(function: Function) -> Function:
        try:
            return cast("Function", njit(cache=True, **options)(function))
        except RuntimeError:  # no folder to keep it in
            return cast("Function", njit(**options)(function))

    return decorate
