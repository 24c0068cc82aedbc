"""An exact sampler of the discrete Gaussian N_Z(0, s^2), P(k) ~ exp(-k^2 / (2 s^2)), in bulk.

The algorithm is that of Canonne, Kamath and Steinke (2020): propose from a discrete Laplace of scale t,
accept y with probability exp(-(|y| - s^2/t)^2 / (2 s^2)); the product is proportional to the target for
every t, here the power of two next to s.  It needs nothing but coins of bias exp(-gamma) with gamma
rational, and those are exact:

    a coin compares a uniform word of 64 bits with exp(-gamma) in floating point, and whenever the two lie
    within ``MARGIN`` of each other (once in about 10^12 coins) it decides in rational arithmetic, drawing
    further bits of the uniform until an interval around exp(-gamma) excludes it.

The margin is hundreds of times what the rounding of gamma and of exp can amount to, so the outcome of
every coin is that of exact arithmetic: no float ever decides.  Given true random bits, the law of the
result is N_Z(0, s^2) without error.  How long it takes depends on the random bits alone.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from huemeans import checks
from huemeans.entropy import BitSource

MARGIN: Final = 2.0**-40
"""Relative distance below which a float comparison is not trusted; rounding stays below 2^-45."""

_FLOOR: Final = 2.0**-60  # the same where exp(-gamma) is itself tiny
_WORD: Final = 2.0**-64
_MOST_SCALE: Final = 2**52  # |y| stays exact in float64 and far inside int64

Integers = NDArray[np.int64]
Exact = Callable[[int], Fraction]


def discrete_gaussian(scale: int, size: int, bits: BitSource, *, margin: float = MARGIN) -> Integers:
    """Draw ``size`` independent integers from N_Z(0, scale^2), exactly.

    ``margin`` only moves work between the fast and the rational comparison; the draws stay the same.
    """
    scale = checks.integer("scale", scale, least=1, remedy="Use a whole number of lattice steps")
    if scale > _MOST_SCALE:
        checks.refuse("scale", repr(scale), "at most 2^52", "Use a coarser lattice")
    kept: list[Integers] = []
    missing = size
    while missing > 0:
        accepted = _accepted(scale, 2 * missing + 32, bits, margin)
        kept.append(accepted[:missing])
        missing -= len(kept[-1])
    return np.concatenate(kept) if kept else np.empty(0, dtype=np.int64)


def _accepted(scale: int, candidates: int, bits: BitSource, margin: float) -> Integers:
    """Propose ``candidates`` and return those that survive every coin, in order."""
    log_t = (
        scale.bit_length() - 1 if scale * scale < 2 ** (2 * scale.bit_length() - 1) else scale.bit_length()
    )
    t = 1 << log_t
    first = bits.words(candidates)
    remainder = (first & np.uint64(t - 1)).astype(np.int64)
    negative = (first >> np.uint64(63)).astype(bool)
    alive = _coins(remainder / t, lambda i: Fraction(int(remainder[i]), t), bits, margin)
    remainder, negative = remainder[alive], negative[alive]
    magnitude = remainder + t * _geometric(len(remainder), bits, margin)
    once = ~(negative & (magnitude == 0))  # zero has one sign, not two
    magnitude, negative = magnitude[once], negative[once]
    centre = scale * scale / t
    gamma = ((magnitude - centre) / scale) ** 2 / 2
    alive = _coins(
        gamma,
        lambda i: Fraction((int(magnitude[i]) * t - scale * scale) ** 2, 2 * (scale * t) ** 2),
        bits,
        margin,
    )
    signed: Integers = np.where(negative, -magnitude, magnitude)
    return signed[alive]


def _geometric(size: int, bits: BitSource, margin: float) -> Integers:
    """Count the successes of coins of bias 1/e before the first failure."""
    counts = np.zeros(size, dtype=np.int64)
    running = np.arange(size)
    while running.size:
        heads = _coins(np.ones(running.size), lambda _: Fraction(1), bits, margin)
        running = running[heads]
        counts[running] += 1
    return counts


def _coins(gamma: NDArray[np.float64], exact: Exact, bits: BitSource, margin: float) -> NDArray[np.bool_]:
    """Toss a coin of bias exp(-gamma_i) for each i; ``exact(i)`` is gamma_i as a fraction."""
    words = bits.words(gamma.size)
    bias = np.exp(-gamma)
    distance = words * _WORD - bias
    heads = distance < 0
    for i in np.flatnonzero(np.abs(distance) <= margin * bias + _FLOOR):
        heads[i] = _exact_coin(int(words[i]), exact(int(i)), bits)
    return heads


def _exact_coin(word: int, gamma: Fraction, bits: BitSource) -> bool:
    """Decide whether the uniform that begins with ``word`` lies below exp(-gamma), in rationals."""
    length = 64
    while True:
        low, high = exp_bounds(gamma, length)
        if Fraction(word + 1, 1 << length) <= low:
            return True
        if Fraction(word, 1 << length) >= high:
            return False
        word = (word << 64) | int(bits.words(1)[0])
        length += 64


def exp_bounds(gamma: Fraction, precision: int) -> tuple[Fraction, Fraction]:
    """Return rationals around exp(-gamma), gamma >= 0, about ``2^-precision`` apart or closer.

    exp(-gamma) = exp(-gamma/n)^n with gamma/n <= 1, where partial sums of the alternating series lie
    above and below in turn.  Both ends are rounded outwards to a grid, so fractions stay short.
    """
    pieces = max(1, -(-gamma.numerator // gamma.denominator))
    x = gamma / pieces
    fine = precision + pieces.bit_length() + 8
    term = low = high = Fraction(1)
    order = 0
    while term > Fraction(1, 1 << fine):
        order += 1
        term = term * x / order
        low, high = (high - term, high) if order % 2 else (low, low + term)
    return _rounded(low, fine, 0) ** pieces, _rounded(high, fine, 1) ** pieces


def _rounded(value: Fraction, precision: int, up: int) -> Fraction:
    return Fraction(int(value * (1 << precision)) + up, 1 << precision)
