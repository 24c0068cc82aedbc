"""Where random bits come from: the operating system, or, inside ``seeded_noise``, a seed.

A fit or a release opens one source and keeps it to its end.  ``random_state`` never reaches this module.
"""

import os
from contextvars import ContextVar
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

SEED: Final[ContextVar[int | None]] = ContextVar("huemeans_noise_seed", default=None)
"""Set by ``huemeans.testing.seeded_noise`` alone."""


class BitSource(Protocol):
    """A stream of independent uniform bits."""

    @property
    def seeded(self) -> bool:
        """Whether the stream can be computed from a seed."""
        ...

    def words(self, size: int) -> NDArray[np.uint64]:
        """Return ``size`` words of 64 bits each."""
        ...


class OperatingSystem:
    """The operating system's generator, which we treat as true randomness."""

    seeded: Final = False

    def words(self, size: int) -> NDArray[np.uint64]:
        """Return ``size`` fresh words."""
        return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)


class Seeded:
    """A reproducible stream for tests and demonstrations.  Noise made from it is not private."""

    seeded: Final = True

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Generator(np.random.PCG64(seed))

    def words(self, size: int) -> NDArray[np.uint64]:
        """Return the next ``size`` words of the stream."""
        return self._generator.integers(0, 2**64, size=size, dtype=np.uint64)


def open_source() -> BitSource:
    """Return the bits for one fit or release: fresh, or the seed's stream from its start."""
    seed = SEED.get()
    return OperatingSystem() if seed is None else Seeded(seed)
