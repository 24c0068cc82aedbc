"""Bounds learned with a part of the budget: noisy histograms of magnitudes, then of cells, twice.

Round 1 counts, per feature, the signed powers of two in a public window, and goes one power further on
either side, where a thin tail may lie below the noise; rounds 2 and 3 count 256 equal
cells on the bounds so far.  Each time the bounds are the hull of what stands clear of the noise, as single
bins, as blocks of bins or as a whole tail; what makes them less than four times narrower is left.
The number of rounds is fixed, and whatever the counts say, the result is an interval of positive width:
a feature at 1000 to 1001 ends about as tight as one at 0 to 1.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from huemeans.chunks import chunk_rows, over_chunks
from huemeans.lattice import RADIUS
from huemeans.mechanism import Mechanism

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEAST_EXPONENT: Final = -20
MOST_EXPONENT: Final = 40
CELLS: Final = 256
ROUNDS: Final = 3

_FALSE_ALARM: Final = 1e-4  # a round, of taking any empty bin of any feature for an occupied one
_WIDEST: Final = 64
_TAIL: Final = 2.5  # deviations of its noise that all of a tail may hold and still be cut off
_GAIN: Final = 4  # how many times narrower bounds must become, or they stay: a tail may hide in the noise
_POWERS: Final = MOST_EXPONENT - LEAST_EXPONENT + 1


def draws(n_features: int) -> int:
    """Return how many discrete Gaussians the three rounds draw."""
    return n_features * (2 * _POWERS + 1 + 2 * CELLS)


def learn_bounds(rows: Floats, mechanism: Mechanism, mu_squared: Fraction) -> tuple[Floats, Floats]:
    """Return private lower and upper bounds, (d,) each, for raw rows (n, d)."""
    width = rows.shape[1]
    share = mu_squared / ROUNDS
    counts, noise = mechanism.histograms("bounds", magnitude_counts(rows), share)
    low, high = _hull(counts, noise, np.tile(_power_edges(), (width, 1)), 1)
    low, high = np.where(low < 0, 2 * low, low / 2), np.where(high > 0, 2 * high, high / 2)
    for _ in range(ROUNDS - 1):
        edges = low[:, None] + (high - low)[:, None] * np.arange(CELLS + 1) / CELLS
        counts, noise = mechanism.histograms("bounds", cell_counts(rows, low, high), share)
        half = (high - low) / CELLS / 2
        left, right = _hull(counts, noise, edges, _WIDEST)
        worth = (right - left) * _GAIN < high - low
        low, high = np.where(worth, left - half, low), np.where(worth, right + half, high)
    return low, high


def magnitude_counts(rows: Floats) -> Integers:
    """Count, per feature, rows by sign and power of two, in units of RADIUS; missing values are in no bin."""

    def bins(part: Floats) -> Floats:
        _, exponent = np.frexp(part)
        power = np.minimum(exponent - 1, MOST_EXPONENT) - LEAST_EXPONENT
        power = np.where(np.isinf(part), MOST_EXPONENT - LEAST_EXPONENT, power)
        return np.where(power < 0, 0, np.sign(part) * (power + 1)) + _POWERS

    return _histograms(rows, bins, 2 * _POWERS + 1)


def cell_counts(rows: Floats, low: Floats, high: Floats) -> Integers:
    """Count, per feature, rows in equal cells between the bounds, those beyond in the outermost cell."""

    def bins(part: Floats) -> Floats:
        place = np.floor((np.clip(part, low, high) - low) / ((high - low) / CELLS))
        return np.clip(place, 0, CELLS - 1)

    return _histograms(rows, bins, CELLS)


def _histograms(rows: Floats, bins: Callable[[Floats], Floats], size: int) -> Integers:
    """Count, per feature, the rows in each of ``size`` bins, in units of RADIUS; NaN is in none."""
    width = rows.shape[1]
    first = np.arange(width) * size

    def counts(part: slice) -> Integers:
        values = rows[part]
        with np.errstate(all="ignore"):
            place = np.where(np.isnan(values), width * size, bins(values) + first).astype(np.intp)
        return np.bincount(place.ravel(), minlength=width * size + 1)

    total = np.zeros(width * size + 1, dtype=np.int64)
    for found in over_chunks(counts, len(rows), max(chunk_rows(width), size)):
        total += found
    return total[:-1].reshape(width, size) * RADIUS


def _power_edges() -> Floats:
    """Return the borders of the magnitude bins, from -2^41 over zero to 2^41."""
    powers = 2.0 ** np.arange(LEAST_EXPONENT, MOST_EXPONENT + 2)
    return np.concatenate([-powers[::-1], powers])


def _hull(counts: Floats, noise: float, edges: Floats, widest: int) -> tuple[Floats, Floats]:
    """Return, per feature, the borders of what is occupied; where nothing is, the whole or [-1, 1]."""
    low, high = edges[:, 0].copy(), edges[:, -1].copy()
    alarm = _FALSE_ALARM / len(counts)
    for feature, row in enumerate(counts):
        bins = np.flatnonzero(occupied(row, noise, widest, alarm))
        if bins.size:
            first = _with_tail(row, int(bins[0]), noise)
            last = len(row) - 1 - _with_tail(row[::-1], len(row) - 1 - int(bins[-1]), noise)
            low[feature], high[feature] = edges[feature, first], edges[feature, last + 1]
        elif widest == 1:
            low[feature], high[feature] = -1.0, 1.0
    return low, high


def _with_tail(counts: Floats, first: int, noise: float) -> int:
    """Return the last bin up to ``first`` before which all bins together stay within the noise."""
    sizes = np.arange(first + 1)
    clear = np.cumsum(counts[: first + 1]) - counts[: first + 1] > _TAIL * noise * np.sqrt(sizes)
    return int(np.flatnonzero(~clear)[-1])


def occupied(counts: Floats, noise: float, widest: int, false_alarm: float) -> NDArray[np.bool_]:
    """Tell which bins hold rows, by blocks of 1 to ``widest`` bins whose sum stands clear of the noise.

    Rows spread thinly show in wide blocks only.  What narrower blocks have shown is left out of wider ones,
    so that one dense bin does not make its neighbors look occupied.
    """
    found = np.zeros(len(counts), dtype=bool)
    clear = -float(ndtri(false_alarm / (2 * len(counts))))
    width = 1
    while width <= widest:
        starts = np.arange(0, len(counts), width)
        sums = np.add.reduceat(np.where(found, 0.0, counts), starts)
        unseen = np.add.reduceat(~found, starts, dtype=np.int64)
        shown = (unseen > 0) & (sums > clear * noise * np.sqrt(unseen))
        found |= np.repeat(shown, width)[: len(counts)]
        width *= 2
    return found
