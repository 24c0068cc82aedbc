"""The loops over rows in raw units: onto the grid, and into histograms from which bounds are learned.

Every value is handled by itself, by correctly rounded operations: NaN and infinities are values like others.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from huemeans.compiling import compiled

Rows = NDArray[np.int32]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@compiled(any_order=False)
def place_on_grid(
    table: Floats,
    bounds: Floats,
    middle: Floats,
    step: Floats,
    missing: Floats,
    drop: tuple[bool, bool],
    half: float,
    grid: Rows,
    kept: Any,
) -> None:
    """Write grid values: clipped to ``bounds`` (2, d), counted in steps from the middle, rounded.

    ``missing`` (d,) stands for NaN.  ``drop`` says whether a NaN, and whether a value out of bounds, drops
    the row, which then has zeros.
    """
    for i in range(len(table)):
        keep = True
        for j in range(table.shape[1]):
            value = table[i, j]
            if np.isnan(value):
                keep &= not drop[0]
                value = missing[j]
            keep &= not (drop[1] and (value < bounds[0, j] or value > bounds[1, j]))
            value = (min(max(value, bounds[0, j]), bounds[1, j]) - middle[j]) / step[j]
            grid[i, j] = np.int32(min(max(np.rint(value), -half), half))
        kept[i] = keep
        if not keep:
            grid[i] = 0


@compiled(any_order=False)
def add_magnitudes(table: Floats, least: int, powers: int, counts: Integers) -> None:
    """Count each value by sign and power of two: counts (d, 2 powers + 1), zero in the middle, NaN nowhere.

    Powers below ``least`` count as zero, those beyond the window as the last.
    """
    bits = table.view(np.uint64)
    for i in range(len(table)):
        for j in range(table.shape[1]):
            value = table[i, j]
            if np.isnan(value):
                continue
            power = np.int64((bits[i, j] >> np.uint64(52)) & np.uint64(0x7FF)) - 1023 - least
            place = 0 if power < 0 else min(int(power), powers - 1) + 1
            counts[j, powers + (place if value > 0 else -place)] += 1


@compiled(any_order=False)
def add_places(table: Floats, features: Integers, low: Floats, width: Floats, counts: Integers) -> None:
    """Count the values of some features in equal cells, those beyond in the outermost: (features, cells)."""
    last = float(counts.shape[1] - 1)
    for i in range(len(table)):
        for at in range(len(features)):
            value = table[i, features[at]]
            if not np.isnan(value):
                place = np.floor((value - low[at]) / width[at])
                counts[at, np.int64(min(place, last)) if place > 0.0 else 0] += 1
