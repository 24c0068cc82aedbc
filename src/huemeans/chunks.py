"""Work on a table chunk by chunk, in as many threads as the BLAS in use has.

Chunks fit into a core's cache.  Each thread multiplies by itself: the BLAS is kept to one thread meanwhile.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from threadpoolctl import ThreadpoolController

Result = TypeVar("Result")

CELLS: Final = 2**16
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
    blas = ThreadpoolController().select(user_api="blas")
    threads = max((library.num_threads for library in blas.lib_controllers), default=1)
    with blas.limit(limits=1), ThreadPoolExecutor(min(threads, len(slices))) as pool:
        return list(pool.map(work, slices))
