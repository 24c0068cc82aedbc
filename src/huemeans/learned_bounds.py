"""Bounds learned with a part of the budget: a noisy histogram of magnitudes, then a zoom on far features.

The first round counts, per feature, rows by sign and power of two in a public window of powers.  Bounds are
the hull of what stands clear of the noise, one power wider, where a thin tail may hide: a fit hardly suffers
from bounds that are a few times too wide, and a lot from rows that are cut off.  Such bounds are far too wide
only for features that lie far from zero, as 1000 to 1001 does in 512 to 1024.  These (with few features, all)
are zoomed into: four rounds of 32 equal cells, of which the outer ones are cut while all that is cut stays
within its noise; for what may hide there, bounds are moved out again as far as a normal tail would reach.

What is zoomed into follows from noisy counts alone, and whatever they say, the result is an interval of
positive width.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from huemeans import checks, raw_kernels
from huemeans.chunks import added_up, chunk_rows
from huemeans.distributed import Distributed
from huemeans.lattice import RADIUS
from huemeans.mechanism import Mechanism
from huemeans.spool import Spool

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEAST_EXPONENT: Final = -20
MOST_EXPONENT: Final = 40
CELLS: Final = 32
ZOOMS: Final = 4

FEW_FEATURES: Final = 3
"""So few are all zoomed into: the tree of the fit splits their box as it is, without learning directions."""

_ZOOM_SHARE: Final = Fraction(1, 10)  # of each zoom; the magnitudes get the rest
_POWERS: Final = MOST_EXPONENT - LEAST_EXPONENT + 1
_FALSE_ALARM: Final = 1e-4  # of taking any empty bin of any feature for an occupied one
_DOUBTFUL: Final = 1e-2  # the same where nothing stands clear, among the usual magnitudes
_USUAL: Final = 17 - LEAST_EXPONENT + 1  # the power of what is usual: up to 2^18
_WIDEST: Final = 4  # powers that are seen together where none is seen alone
_FAR: Final = 4.0  # farthest over nearest, below which a feature lies far from zero
_CUT: Final = 3.5  # deviations of its noise that all of a tail may hold and still be cut off
_REACH: Final = 3.0  # deviations that a normal tail is followed to
_MOST_HIDDEN: Final = 0.2
_LEAST_HIDDEN: Final = 1e-4
_HARMLESS: Final = 0.01  # of the rows: as many may be cut off a feature that lies near zero
_GAIN: Final = 1.3  # how many times narrower bounds must become, or they stay


def draws(n_features: int) -> int:
    """Return how many discrete Gaussians are drawn at the most."""
    return n_features * (2 * _POWERS + 1 + ZOOMS * CELLS)


def learn_bounds(
    rows: Floats | Spool | Distributed, mechanism: Mechanism, mu_squared: Fraction
) -> tuple[Floats, Floats]:
    """Return private lower and upper bounds, (d,) each, for raw rows (n, d)."""
    counts, noise = mechanism.histograms(
        "bounds", counted(rows, Magnitudes(rows.shape[1])), mu_squared * (1 - ZOOMS * _ZOOM_SHARE)
    )
    low, high, far = magnitude_bounds(counts, noise)
    zoomed = np.flatnonzero(far | (len(far) <= FEW_FEATURES))
    for _ in range(ZOOMS if zoomed.size else 0):
        total = counted(rows, Places(zoomed, low[zoomed], high[zoomed], rows.shape[1]))
        counts, noise = mechanism.histograms("bounds", total, mu_squared * _ZOOM_SHARE)
        for feature, row in zip(zoomed, counts, strict=True):
            most = 1.0 if far[feature] else _HARMLESS
            low[feature], high[feature] = narrowed(
                row, noise, float(low[feature]), float(high[feature]), most
            )
    return low, high


@dataclass(frozen=True)
class Magnitudes:
    """Counts, per feature, of values by sign and power of two; missing values are in no bin."""

    width: int

    @property
    def shape(self) -> tuple[int, int]:
        """A histogram for each feature."""
        return self.width, 2 * _POWERS + 1

    def add(self, rows: Floats, total: Integers) -> None:
        """Count a block of rows."""
        checks.width("rows", rows, self.width)
        raw_kernels.add_magnitudes(rows, LEAST_EXPONENT, _POWERS, total)


@dataclass(frozen=True, eq=False)
class Places:
    """Counts, for some features, of values in equal cells between bounds, those beyond in the outermost."""

    features: Integers
    low: Floats
    high: Floats
    width: int
    """Of the rows."""

    @property
    def shape(self) -> tuple[int, int]:
        """A histogram for each of these features."""
        return len(self.features), CELLS

    def add(self, rows: Floats, total: Integers) -> None:
        """Count a block of rows."""
        checks.width("rows", rows, self.width)
        raw_kernels.add_places(rows, self.features, self.low, (self.high - self.low) / CELLS, total)


def counted(rows: Floats | Spool | Distributed, job: Magnitudes | Places) -> Integers:
    """Return the exact histograms of raw rows, in units of RADIUS."""
    if isinstance(rows, Distributed):
        return rows.total(job) * RADIUS

    def add(part: slice, total: Integers) -> None:
        with np.errstate(all="ignore"):
            block = rows[part].astype(np.float64, order="C")
        job.add(block, total)

    return added_up(add, len(rows), chunk_rows(rows.shape[1]), job.shape) * RADIUS


def magnitude_bounds(counts: Floats, noise: float) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return bounds per feature from noisy counts by sign and power, and which features lie far from zero."""
    width = len(counts)
    low, high, far = np.full(width, -1.0), np.full(width, 1.0), np.zeros(width, dtype=bool)
    edges = np.append(0.0, 2.0 ** np.arange(LEAST_EXPONENT, MOST_EXPONENT + 2))
    for feature, row in enumerate(counts):
        signed = _standing_out(row, noise, width)
        if not signed.any():
            continue
        first, last = int(signed.min()), int(signed.max())
        far[feature] = first * last > 0 and abs(last - first) < np.log2(_FAR)
        nearest = edges[min(abs(first), abs(last))] / 2 if far[feature] else 0.0
        low[feature] = -2 * edges[1 - first] if first < 0 else nearest
        high[feature] = 2 * edges[1 + last] if last > 0 else -nearest
    return low, high, far


def _standing_out(row: Floats, noise: float, n_features: int) -> Integers:
    """Return the signed powers, 1 for the least, that stand clear of the noise.

    Where none does, both sides of zero are seen as one, and then less clear ones are looked for.
    """
    both = row[_POWERS + 1 :] + row[_POWERS - 1 :: -1]
    for alarm, farthest in ((_FALSE_ALARM, _POWERS), (_DOUBTFUL, _USUAL)):
        each = alarm / (2 * n_features)
        found = np.flatnonzero(occupied(row, noise, _WIDEST, each)) - _POWERS
        if not found.size:
            found = 1 + np.flatnonzero(occupied(both, noise * np.sqrt(2), _WIDEST, each))
            found = np.concatenate([-found, found])
        found = found[np.abs(found) <= farthest]
        if found.size:
            break
    return found


def narrowed(
    counts: Floats, noise: float, low: float, high: float, most_hidden: float
) -> tuple[float, float]:
    """Return narrower bounds if the outer cells, all together, stay within their noise.

    They must become a good deal narrower, and no more than this share of the rows may be hidden beyond.
    """
    sizes = np.arange(CELLS + 1)
    tails = np.insert(np.cumsum([counts, counts[::-1]], axis=1), 0, 0.0, axis=1)
    cut = (tails > _CUT * noise * np.sqrt(sizes)).argmax(axis=1) - 1
    if cut.min() < 0 or cut.sum() >= CELLS:
        return low, high
    hidden = np.maximum(tails[[0, 1], cut], 0.0) + noise * np.sqrt(cut)
    share = hidden / max(float(counts.sum()), noise)
    reach = np.maximum(_REACH / -ndtri(np.clip(share, _LEAST_HIDDEN, _MOST_HIDDEN)) - 1, 0.0) / 2
    gone = np.maximum(cut - reach * (CELLS - cut.sum()), 0.0) / CELLS
    if 1 / (1 - gone.sum()) < _GAIN or share.sum() > most_hidden:
        return low, high
    return low + float(gone[0]) * (high - low), high - float(gone[1]) * (high - low)


def occupied(counts: Floats, noise: float, widest: int, false_alarm: float) -> NDArray[np.bool_]:
    """Tell which bins hold rows, by blocks of 1 to ``widest`` bins whose sum stands clear of the noise.

    Rows spread thinly show in wide blocks only.  What narrower blocks have shown is left out of wider ones,
    so that one dense bin does not make its neighbors look occupied.
    """
    found = np.zeros(len(counts), dtype=bool)
    clear = -float(ndtri(false_alarm / (4 * len(counts))))
    width = 1
    while width <= widest:
        for offset in sorted({0, width // 2}):  # what straddles two blocks lies within one of the others
            starts = np.unique(np.append(0, np.arange(offset, len(counts), width)))
            sums = np.add.reduceat(np.where(found, 0.0, counts), starts)
            unseen = np.add.reduceat(~found, starts, dtype=np.int64)
            shown = (unseen > 0) & (sums > clear * noise * np.sqrt(unseen))
            found |= np.repeat(shown, np.diff(np.append(starts, len(counts))))
        width *= 2
    return found
