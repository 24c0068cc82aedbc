"""Work on a table chunk by chunk, in as many threads as the BLAS in use has.

Chunks fit into a core's cache.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Lock
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")
Integers = NDArray[np.int64]

CELLS: Final = 2**18
"""Numbers of a table that are looked at together."""

_LEAST_ROWS: Final = 64


def chunk_rows(width: int) -> int:
    """Return how many rows of this width are looked at together."""
    return max(_LEAST_ROWS, CELLS // max(width, 1))


def over_chunks(work: Callable[[slice], Result], n_rows: int, size: int) -> list[Result]:
    """Call ``work`` on slices of ``size`` rows that make up ``n_rows``; return its results in order."""
    slices = [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
    if len(slices) <= 1:
        return [work(part) for part in slices]
    with ThreadPoolExecutor(min(threads(), len(slices))) as pool:
        return list(pool.map(work, slices))


def added_up(
    add: Callable[[slice, Integers], None], n_rows: int, size: int, shape: tuple[int, ...]
) -> Integers:
    """Let ``add`` add what each slice of ``size`` rows holds to a total; return the sum of all totals.

    Each thread has a total of its own, and takes the next slice when it is done with one.
    """
    workers = min(threads(), -(-n_rows // size))
    starts, one_at_a_time = iter(range(0, n_rows, size)), Lock()

    def following() -> int | None:
        with one_at_a_time:  # no slice is handed out twice, on any Python
            return next(starts, None)

    def run(_: int) -> Integers:
        total = np.zeros(shape, dtype=np.int64)
        while (start := following()) is not None:
            add(slice(start, min(start + size, n_rows)), total)
        return total

    if workers <= 1:
        return run(0)
    with ThreadPoolExecutor(workers) as pool:
        first, *others = pool.map(run, range(workers))
    for total in others:
        first += total
    return first


def threads() -> int:
    """Return how many threads the BLAS in use has now."""
    return max((library.num_threads for library in _libraries().lib_controllers), default=1)


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")
