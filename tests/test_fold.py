"""Exact integer sums, the same in any order and any chunks, and bounded row by row."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from huemeans import InvalidArgument
from huemeans import fold as folding
from huemeans.box import Box
from huemeans.chunks import added_up
from huemeans.domain import GRID_HALF
from huemeans.fold import (
    MOMENT_RADIUS,
    Assignment,
    CellCounts,
    Count,
    Distances,
    LeafSums,
    Lloyd,
    Loss,
    Mean,
    MomentSums,
    fold,
)
from huemeans.lattice import MOST_ZOOM, RADIUS, ZOOM, Whitening

D = 5
METRIC = np.geomspace(1e-3, 1e-6, D)


def grid(n, seed=0):
    """Return grid rows, corners of the box among them."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-GRID_HALF, GRID_HALF, size=(n, D), endpoint=True, dtype=np.int32)
    rows[: n // 4] = rng.choice([-GRID_HALF, GRID_HALF], size=(n // 4, D))
    return rows


def states(seed=0):
    """Return one state of each kind, with random public facts."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(D, D)) * METRIC * GRID_HALF / 4
    whitening = Whitening.from_shape(root.T @ root, METRIC, 1.0)
    other = Whitening.from_shape(root @ root.T, METRIC, 0.5)
    centers = rng.uniform(-GRID_HALF, GRID_HALF, size=(7, D))
    directions = np.linalg.qr(rng.normal(size=(D, D)))[0][:3]
    box = Box(np.zeros(D, dtype=np.int64), directions, np.full(3, 200.0), METRIC, 12)
    rows = grid(300, seed)
    nodes = np.unique(box.keys(rows, 6))[::2]
    deeper = np.unique(box.keys(rows, 12))[::3]
    deeper = deeper[~np.isin(deeper >> 6, nodes)]
    levels = np.repeat([6, 12], [len(nodes), len(deeper)])
    middles = rng.integers(-1000, 1000, size=(len(levels), D))
    assignment = Assignment(centers, METRIC)
    references = np.rint(centers).astype(np.int64)
    return {
        "count": Count(),
        "mean": Mean(np.zeros(D, dtype=np.int64), whitening),
        "moments": MomentSums(np.zeros(D, dtype=np.int64), Whitening.from_shape(np.eye(D), METRIC, 50.0)),
        "cells": CellCounts(box),
        "leaves": LeafSums(box, levels, np.append(nodes, deeper), middles, {6: whitening, 12: other}),
        "lloyd": Lloyd(references, assignment, whitening, rng.integers(ZOOM, 5 * ZOOM, size=7)),
        "narrow": Lloyd(references, assignment, whitening, rng.integers(ZOOM, MOST_ZOOM, size=7)),
        "distances": Distances(references, assignment, METRIC, np.array([1e3, 1e4, 1e5, 1e7])),
        "loss": Loss(references, assignment, METRIC, 1e4),
    }


KINDS = list(states())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_sums_are_the_same_for_any_order_and_any_chunks(kind, seed, monkeypatch):
    """Shuffled, in Fortran order, in odd chunks over threads and split over workers: identical integers."""
    rows, state = grid(2000, seed), states(seed)[kind]
    expected = fold(rows, state)
    order = np.random.default_rng(seed).permutation(2000)
    np.testing.assert_array_equal(expected, fold(np.asfortranarray(rows[order]), state))
    np.testing.assert_array_equal(expected, fold(rows[:701], state) + fold(rows[701:], state))
    monkeypatch.setattr(folding, "chunk_rows", lambda width: 97 + 0 * width)
    with threadpool_limits(3, user_api="blas"):
        np.testing.assert_array_equal(expected, fold(rows, state))


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_adds_the_same_whoever_is_beside_it(kind):
    """The sum over rows is the sum of one-row sums, also where every row ties between two centroids."""
    state = states()[kind]
    rows = grid(200)
    alone = sum(fold(row[None], state) for row in rows)
    np.testing.assert_array_equal(alone, fold(rows, state))


def test_rows_that_tie_between_two_centroids_do_not_move_each_other():
    """All rows on the border: removing one changes the totals by that row alone."""
    whitening = Whitening.from_shape(np.eye(D), METRIC, 1.0)
    centers = np.zeros((2, D))
    centers[:, 0] = [-1000, 1000]
    state = Lloyd(centers.astype(np.int64), Assignment(centers, METRIC), whitening, np.full(2, ZOOM))
    rows = np.zeros((501, D), dtype=np.int32)
    rows[:, 1:] = np.random.default_rng(0).integers(-GRID_HALF, GRID_HALF, size=(501, D - 1))
    full = fold(rows, state)
    for row in range(0, 501, 50):
        gone = full - fold(np.delete(rows, row, axis=0), state)
        np.testing.assert_array_equal(fold(rows[row : row + 1], state), gone)
        assert (gone[:, 0] == 1).sum() == 1


BOUNDS = {
    "count": RADIUS**2,
    "mean": RADIUS**2,
    "moments": MOMENT_RADIUS**4,
    "cells": RADIUS**2,
    "leaves": RADIUS**2,
    "lloyd": 2 * RADIUS**2,
    "narrow": 2 * RADIUS**2,
    "distances": RADIUS**2,
    "loss": RADIUS**2,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_no_row_moves_what_is_released_by_more_than_its_bound(kind, seed):
    """With and without a row, among others: squares in Python integers; off-diagonals count double."""
    state, rows = states(seed)[kind], grid(300, seed)
    others = fold(grid(1000, seed + 100), state)
    without, squares = state.released(others), []
    weight = np.ones(without.shape[1], dtype=int)
    if kind == "moments":
        weight[state.pairs[0] != state.pairs[1]] = 2
    for row in rows:
        moved = state.released(others + fold(row[None], state)) - without
        assert moved.any(axis=1).sum() <= 1
        squares.append(sum(int(w) * int(v) ** 2 for w, v in zip(weight, moved.sum(axis=0), strict=True)))
    assert 0.1 * BOUNDS[kind] < max(squares) <= BOUNDS[kind]


def test_labels_are_those_of_the_nearest_centroid():
    """Integer scores agree with floating-point distances wherever these are not on the border."""
    rng = np.random.default_rng(4)
    centers = rng.uniform(-GRID_HALF, GRID_HALF, size=(9, D))
    rows = grid(3000)
    distances = np.linalg.norm((rows[:, None] - centers) * METRIC, axis=2)
    nearest = np.sort(distances, axis=1)
    clear = nearest[:, 1] - nearest[:, 0] > 1e-6 * nearest[:, 1]
    labels = Assignment(centers, METRIC).all_labels(rows)
    np.testing.assert_array_equal(distances.argmin(axis=1)[clear], labels[clear])
    assert clear.mean() > 0.99


def test_the_cells_of_a_box_hold_their_rows():
    """A row inside the box lies in the cell that its key names, at every level; one outside is moved in."""
    rng = np.random.default_rng(5)
    directions = np.linalg.qr(rng.normal(size=(D, D)))[0][:2]
    box = Box(np.full(D, 100), directions, np.array([50.0, 30.0]), METRIC, 11)
    rows = grid(500)
    along = (rows - 100) * METRIC @ directions.T
    inside = (np.abs(along) < [49.9, 29.9]).all(axis=1)
    assert 20 < inside.sum() < 480
    deepest = box.keys(rows, 11)
    for level in (0, 1, 5, 11):
        keys = box.keys(rows, level)
        np.testing.assert_array_equal(deepest >> (11 - level), keys)
        middles, widths = box.cells(keys, level)
        assert (np.abs(along - middles)[inside] <= widths * (1 + 1e-6)).all()
        assert (np.abs(middles) <= box.half_widths).all()


def test_the_loss_of_a_row_is_its_clipped_squared_distance():
    """In steps of cap / RADIUS, truncated."""
    state = Loss(np.zeros((1, D), dtype=np.int64), Assignment(np.ones((1, D)), METRIC), METRIC, 1e4)
    rows = grid(100)
    squares = ((rows * METRIC) ** 2).sum(axis=1)
    expected = np.minimum(squares, 1e4).sum() / 1e4 * RADIUS
    assert abs(fold(rows, state)[0, 0] - expected) <= 200


def test_empty_batches_and_rows_outside_every_cell_add_nothing():
    """No rows, and rows in no counted cell, give zeros of the public shape."""
    for state in states().values():
        assert not fold(np.empty((0, D), dtype=np.int32), state).any()
    leaves = states()["leaves"]
    cells = np.flatnonzero(fold(grid(500), leaves)[:, 0])
    assert 0 < fold(grid(500), leaves)[cells, 0].sum() < 500


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "count"])
def test_rows_of_another_width_are_refused_without_their_number(kind):
    """Compiled loops trust the sizes that they are given, so each state checks them."""
    for width in (D - 1, D + 1):
        with pytest.raises(InvalidArgument, match=rf"^rows=<table of {width} columns> "):
            fold(np.zeros((777, width), dtype=np.int32), states()[kind])


def test_slices_are_handed_out_once():
    """Many threads, small slices: every row is counted exactly once."""
    with threadpool_limits(8, user_api="blas"):
        found = added_up(lambda part, total: total.__iadd__(part.stop - part.start), 100_003, 7, (1,))
    assert found.tolist() == [100_003]


def test_counts_of_the_deepest_cells_hold_those_of_every_level():
    """Chosen cells of a level are counted as their rows' keys say."""
    state, rows = states()["cells"], grid(800)
    released = state.released(fold(rows, state))
    for level in (0, 3, 12):
        keys, counts = np.unique(state.box.keys(rows, level), return_counts=True)
        np.testing.assert_array_equal(state.at(released, level, keys[::2]), counts[::2] * RADIUS)
        assert state.at(released, level, np.empty(0, dtype=np.int64)).shape == (0,)
