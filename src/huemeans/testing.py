"""Reproducible noise, for tests and demonstrations only."""

from collections.abc import Iterator
from contextlib import contextmanager

from huemeans import checks
from huemeans.entropy import SEED


@contextmanager
def seeded_noise(seed: int) -> Iterator[None]:
    """Make every fit or release inside the block draw the same noise, each from the start of one stream.

    What is made inside is marked NOT PRIVATE: whoever knows the seed can subtract the noise.

    Examples
    --------
    >>> from huemeans import ColoredGaussian
    >>> noise = ColoredGaussian([[1.0]])
    >>> with seeded_noise(7):
    ...     first, second = noise.release([0.0], [[0.5]]), noise.release([0.0], [[0.5]])
    >>> bool((first == second).all()), repr(first).startswith("NOT PRIVATE")
    (True, True)
    """
    token = SEED.set(checks.integer("seed", seed, least=0, remedy="Any whole number does"))
    try:
        yield
    finally:
        SEED.reset(token)
