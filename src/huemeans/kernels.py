"""The loops over rows, compiled: integers in, exact integers out, in whatever order a machine takes them.

Grid rows are int32.  Every sum and product below that a result depends on is a whole number (or, for
whitened offsets, one divided by a power of two) of less than 2^53, which float64 holds exactly: it makes no
difference whether terms are added in order, by eights, or fused with their products, and results are the
same on any machine.  What is only an estimate, and how a right answer follows from it, is said where it is.

Rows are taken ``LANES`` at a time where each is measured against few vectors: an instruction then works on
the same feature of several rows.
"""

from contextlib import suppress
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from huemeans.compiling import compiled
from huemeans.raw_kernels import add_magnitudes, add_places, place_on_grid

Rows = NDArray[np.int32]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LANES: Final = 128
RADIUS_BITS: Final = 26
FARTHEST: Final = 2.0**20
"""No two grid values of a feature lie farther apart."""

_PAD: Final = 8  # so that the lanes of several features do not compete for one place of the cache
_WITHIN: Final = 1 - 2.0**-40  # rounding cannot push a length beyond the radius that it is scaled to
PLACE_BITS: Final = 36
"""Of the place of a row along a side of a box."""


@compiled(any_order=True)
def _transposed(rows: Rows, start: int, lanes: Floats) -> int:
    """Write up to LANES rows from ``start`` into lanes (d, LANES + pad); return how many there are."""
    found = min(LANES, len(rows) - start)
    for lane in range(found):
        row = rows[start + lane]
        for j in range(rows.shape[1]):
            lanes[j, lane] = float(row[j])
    return found


@compiled(any_order=True)
def _products(lanes: Floats, first: Floats, second: Floats, one: Floats, other: Floats) -> None:
    """Multiply all lanes with two vectors (d,)."""
    d = len(first)
    for lane in range(LANES):
        one[lane] = 0.0
        other[lane] = 0.0
    for j in range(0, d - 3, 4):
        x0, x1, x2, x3 = lanes[j], lanes[j + 1], lanes[j + 2], lanes[j + 3]
        a0, a1, a2, a3 = first[j], first[j + 1], first[j + 2], first[j + 3]
        b0, b1, b2, b3 = second[j], second[j + 1], second[j + 2], second[j + 3]
        for lane in range(LANES):
            u0, u1, u2, u3 = x0[lane], x1[lane], x2[lane], x3[lane]
            one[lane] += a0 * u0 + a1 * u1 + a2 * u2 + a3 * u3
            other[lane] += b0 * u0 + b1 * u1 + b2 * u2 + b3 * u3
    for j in range(d - d % 4, d):
        x0 = lanes[j]
        a0, b0 = first[j], second[j]
        for lane in range(LANES):
            one[lane] += a0 * x0[lane]
            other[lane] += b0 * x0[lane]


@compiled(any_order=True)
def _raise_best(scores: Floats, level: float, label: int, best: Floats, labels: Integers) -> None:
    for lane in range(LANES):
        if scores[lane] - level > best[lane]:
            best[lane] = scores[lane] - level
            labels[lane] = label


@compiled(any_order=True)
def nearest(rows: Rows, slopes: Floats, levels: Floats, labels: Integers) -> None:
    """Write for each row the k with the largest slopes_k . x - levels_k; of several, the first."""
    k = len(slopes)
    lanes = np.zeros((rows.shape[1], LANES + _PAD))
    scores = np.zeros((2, LANES))
    best = np.empty(LANES)
    found = np.empty(LANES, dtype=np.int64)
    for start in range(0, len(rows), LANES):
        size = _transposed(rows, start, lanes)
        best[:] = -np.inf
        found[:] = 0
        for first in range(0, k, 2):
            second = min(first + 1, k - 1)
            _products(lanes, slopes[first], slopes[second], scores[0], scores[1])
            _raise_best(scores[0], levels[first], first, best, found)
            _raise_best(scores[1], levels[second], second, best, found)
        labels[start : start + size] = found[:size]


@compiled(any_order=True)
def cell_keys(
    rows: Rows,
    columns: Floats,
    shifts: Floats,
    shrink: Floats,
    starts: Integers,
    bits: Integers,
    keys: Integers,
) -> None:
    """Write the key of each row in a box with ``len(columns)`` sides.

    Along a side, a row lies at columns_s . x + shifts_s, moved into [0, 2^36); ``shrink`` takes that to the
    number of a place, and ``bits``, from ``starts`` on, says which bits of the key this place stands for.
    """
    sides = len(columns)
    lanes = np.zeros((rows.shape[1], LANES + _PAD))
    along = np.zeros((2, LANES))
    found = np.empty(LANES, dtype=np.int64)
    for start in range(0, len(rows), LANES):
        size = _transposed(rows, start, lanes)
        found[:] = 0
        for first in range(0, sides, 2):
            second = min(first + 1, sides - 1)
            _products(lanes, columns[first], columns[second], along[0], along[1])
            for which in range(2):
                side = second if which else first
                for lane in range(LANES):
                    place = along[which, lane] + shifts[side]
                    place = min(place, 2.0**PLACE_BITS - 1) if place > 0.0 else 0.0
                    found[lane] |= bits[starts[side] + int(place * shrink[side])]
        keys[start : start + size] = found[:size]


@compiled(any_order=False)
def _shortened(z: Floats, radius: float) -> None:
    """Scale whole numbers to length ``radius`` at most, in place.

    Entries are halved until they fit into 26 bits, lengths are measured in int64, and every operation is
    correctly rounded, by itself.
    """
    top = 0.0
    for j in range(len(z)):
        top = max(top, abs(z[j]))
    half = 1.0
    while top * half > 2.0**RADIUS_BITS:
        half *= 0.5
    square = np.int64(0)
    for j in range(len(z)):
        z[j] = np.trunc(z[j] * half)
        square += np.int64(z[j]) * np.int64(z[j])
    factor = radius / np.sqrt(max(float(square), 1.0)) * _WITHIN
    short = np.int64(0)
    for j in range(len(z)):
        z[j] = np.trunc(z[j] * factor)
        short += np.int64(z[j]) * np.int64(z[j])
    if float(short) > radius * radius:
        z[:] = 0.0


@compiled(any_order=True)
def _whitened(rows: Rows, i: int, references: Floats, cell: int, maps: Floats, group: int, z: Floats) -> bool:
    """Write the offset of row ``i`` times its group's map, exactly; tell whether it is one of a grid."""
    d = len(z)
    z[:] = 0.0
    valid = True
    for j in range(0, d - 3, 4):
        x0 = float(rows[i, j]) - references[cell, j]
        x1 = float(rows[i, j + 1]) - references[cell, j + 1]
        x2 = float(rows[i, j + 2]) - references[cell, j + 2]
        x3 = float(rows[i, j + 3]) - references[cell, j + 3]
        valid &= max(max(abs(x0), abs(x1)), max(abs(x2), abs(x3))) <= FARTHEST  # noqa: PLW3301
        for at in range(d):
            z[at] += (
                x0 * maps[group, j, at]
                + x1 * maps[group, j + 1, at]
                + x2 * maps[group, j + 2, at]
                + x3 * maps[group, j + 3, at]
            )
    for j in range(d - d % 4, d):
        x0 = float(rows[i, j]) - references[cell, j]
        valid &= abs(x0) <= FARTHEST
        for at in range(d):
            z[at] += x0 * maps[group, j, at]
    return valid


@compiled(any_order=True)
def _square_of_truncated(z: Floats) -> float:
    """Truncate; return the squared length, exact up to 2^53 and never less than that beyond."""
    square = 0.0
    for j in range(len(z)):
        z[j] = np.trunc(z[j])
        square += z[j] * z[j]
    return square


@compiled(any_order=True)
def add_offsets(
    rows: Rows,
    cells: Integers,
    references: Floats,
    groups: Integers,
    weights: Floats,
    maps: Floats,
    sure: Floats,
    most: Floats,
    radius: float,
    total: Integers,
) -> None:
    """Add each row to its cell: one row; if it lies inside its clip region one more, and its values; else y.

    With z the offset from the cell's reference times its group's map, inside means |trunc z|^2 <= ``most``.
    That is so, and the offset one of a grid, wherever the estimate, ``weights`` times squared offsets, is at
    most ``sure``, however it is rounded; only for other rows z is made.  y is z brought to length ``radius``.
    The columns of ``total`` are rows, rows inside, d sums of values, d sums of y.  Cells beyond the last are
    for rows of no cell.
    """
    d = rows.shape[1]
    z = np.empty(d)
    for i in range(len(rows)):
        cell = cells[i]
        if cell >= len(references):
            continue
        group = groups[cell]
        total[cell, 0] += 1
        estimate = 0.0
        for j in range(d):
            offset = float(rows[i, j]) - references[cell, j]
            estimate += weights[group, j] * offset * offset
        inside = estimate <= sure[cell]
        if not inside:
            if not _whitened(rows, i, references, cell, maps, group, z):
                continue
            inside = _square_of_truncated(z) <= most[cell]
        if inside:
            total[cell, 1] += 1
            for j in range(d):
                total[cell, 2 + j] += rows[i, j]
        else:
            _shortened(z, radius)
            for j in range(d):
                total[cell, 2 + d + j] += np.int64(z[j])


@compiled(any_order=True)
def squares(
    rows: Rows, cells: Integers, references: Floats, scales: Floats, cap: float, found: Floats
) -> None:
    """Write the sum of trunc(scales * offset)^2 of each row about the reference of its cell, or ``cap``."""
    for i in range(len(rows)):
        cell = cells[i]
        square = 0.0
        for j in range(rows.shape[1]):
            z = np.trunc((float(rows[i, j]) - references[cell, j]) * scales[j])
            square += z * z
        found[i] = min(square, cap)


@compiled(any_order=True)
def _coarse_offsets(lanes: Floats, reference: Floats, scales: Floats, radius: float, coarser: float) -> None:
    """Turn lanes of rows into scaled offsets of length ``radius`` at most, times ``coarser``, truncated."""
    d = len(reference)
    square = np.zeros(LANES)
    z = np.empty(d)
    for j in range(d):
        for lane in range(LANES):
            y = np.trunc((lanes[j, lane] - reference[j]) * scales[j])
            lanes[j, lane] = y
            square[lane] += y * y
    for lane in range(LANES):
        if not square[lane] <= radius * radius:
            for j in range(d):
                z[j] = lanes[j, lane]
            _shortened(z, radius)
            for j in range(d):
                lanes[j, lane] = z[j]
    for j in range(d):
        for lane in range(LANES):
            lanes[j, lane] = np.trunc(lanes[j, lane] * coarser)


@compiled(any_order=True)
def add_products(
    rows: Rows, reference: Floats, scales: Floats, radius: float, coarser: float, sums: Floats
) -> None:
    """Add y y' for each row: its scaled offset, brought to length ``radius``, times ``coarser``, truncated.

    Of ``sums`` (d, d), the upper triangle is written.
    """
    d = rows.shape[1]
    lanes = np.zeros((d, LANES + _PAD))
    for start in range(0, len(rows), LANES):
        size = _transposed(rows, start, lanes)
        _coarse_offsets(lanes, reference, scales, radius, coarser)
        lanes[:, size:] = 0.0
        for i in range(d):
            for j in range(i, d - 1, 2):
                one, other = 0.0, 0.0
                for lane in range(LANES):
                    one += lanes[i, lane] * lanes[j, lane]
                    other += lanes[i, lane] * lanes[j + 1, lane]
                sums[i, j] += one
                sums[i, j + 1] += other
            if (d - i) % 2:
                one = 0.0
                for lane in range(LANES):
                    one += lanes[i, lane] * lanes[d - 1, lane]
                sums[i, d - 1] += one


@compiled(any_order=False)
def add_counts(cells: Integers, counts: Integers) -> None:
    """Count each cell's rows."""
    for cell in cells:
        counts[cell] += 1


@cache
def ready() -> None:
    """Compile all of it, or load what was kept: before a budget is entered, for this may fail.

    Where what was compiled cannot be kept, for want of room or of rights, it is used all the same.
    """
    rows, table = np.empty((0, 1), dtype=np.int32), np.empty((0, 1))
    cells, one = np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
    square, line, total = np.ones((1, 1)), np.ones(1), np.zeros((1, 4), dtype=np.int64)
    drop, kept = (False, False), np.empty(0, dtype=bool)
    calls: list[tuple[Any, tuple[Any, ...]]] = [
        (nearest, (rows, square, line, cells)),
        (cell_keys, (rows, square, line, line, one, one, cells)),
        (add_offsets, (rows, cells, square, one, square, np.ones((1, 1, 1)), line, line, 1.0, total)),
        (squares, (rows, cells, square, line, 1.0, np.empty(0))),
        (add_products, (rows, line, line, 1.0, 1.0, square)),
        (place_on_grid, (table, np.ones((2, 1)), line, line, line, drop, 1.0, rows, kept)),
        (add_magnitudes, (table, 0, 1, total)),
        (add_places, (table, one, line, line, total)),
        (add_counts, (cells, one)),
    ]
    for kernel, arguments in calls:
        with suppress(OSError):
            kernel(*arguments)
