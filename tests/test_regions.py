"""Sums within clip regions: bounded, row-pure, exact."""

import numpy as np
import pytest

from huemeans import Domain, InvalidArgument
from huemeans.domain import GRID_HALF
from huemeans.lattice import MOST_ZOOM, RADIUS, ZOOM, Whitening
from huemeans.regions import Regions

ODD = np.array([0.0, -0.0, 5e-324, -2.2e-308, 1e308, -1e308, np.nan, np.inf, -np.inf, 1.0, -1.0, 0.5, 1e-9])


def square(vector):
    """Return a squared length in Python integers."""
    return sum(int(v) ** 2 for v in vector)


def random_regions(rng, d, cells=3):
    """Return regions of random shapes, spread over up to twelve orders of magnitude, and their domain."""
    domain = Domain(-(10 ** rng.uniform(-2, 4, size=d)), 10 ** rng.uniform(-2, 4, size=d))
    whitenings = []
    for _ in range(2):
        root = rng.normal(size=(d, d)) * 10 ** rng.uniform(-3, 3, size=d)
        whitenings.append(Whitening.from_shape(root @ root.T, domain.step, radius=10 ** rng.uniform(-3, 3)))
    references = rng.integers(-GRID_HALF, GRID_HALF, size=(cells, d), endpoint=True)
    zooms = rng.integers(ZOOM, rng.choice([ZOOM + 1, 8 * ZOOM, MOST_ZOOM]), size=cells)
    return Regions(references, whitenings, rng.integers(2, size=cells), zooms), domain


def adversarial_rows(rng, domain, size):
    """Return grid rows of odd floats, of corners of the box, and of values just around the bounds."""
    d = domain.n_features
    odd = rng.choice(ODD, size=(size, d))
    corners = np.where(rng.random((size, d)) < 0.5, domain.lower, domain.upper)
    nudged = np.nextafter(corners, rng.choice([-np.inf, np.inf], size=(size, d)))
    return domain.to_grid(np.concatenate([odd, corners, nudged]))[0]


def boundary_rows(rng, regions, cell, size):
    """Return grid rows close to the border of a region, on both sides of it."""
    whitening = regions.whitenings[regions.groups[cell]]
    direction = rng.normal(size=(size, regions.references.shape[1]))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    length = RADIUS / (regions.zooms[cell] / ZOOM) * (1 + rng.normal(size=(size, 1)) * 1e-6)
    rows = np.rint(regions.references[cell] + whitening.color(direction * length))
    return np.clip(rows, -GRID_HALF, GRID_HALF).astype(np.int32)


def totals(regions, rows, cells):
    """Return the totals of rows."""
    total = np.zeros(regions.shape, dtype=np.int64)
    regions.add(np.ascontiguousarray(rows), cells, total)
    return total


@pytest.mark.parametrize("d", [1, 2, 3, 8, 29])
def test_one_row_moves_the_sums_by_the_radius_at_most(d):
    """Over 100,000 adversarial rows in all, alone and beside others, in Python integers."""
    rng = np.random.default_rng(d)
    longest = 0
    for _ in range(20):
        regions, domain = random_regions(rng, d)
        rows = adversarial_rows(rng, domain, 250)
        rows = np.vstack([rows, *(boundary_rows(rng, regions, cell, 100) for cell in range(3))])
        cells = rng.integers(3, size=len(rows))
        others = totals(regions, rows[:400], cells[:400]) * int(rng.integers(2))
        without = regions.sums(others)
        for row, cell in zip(rows, cells, strict=True):
            moved = regions.sums(others + totals(regions, row[None], np.array([cell]))) - without
            longest = max(longest, square(moved.ravel()))
            assert longest <= RADIUS**2
    assert longest > 0.9 * RADIUS**2


def test_every_corner_of_the_box_is_bounded():
    """All 2^10 corners of a ten-dimensional box, seen from another corner, which is as far as rows get."""
    rng = np.random.default_rng(0)
    corners = np.array(np.meshgrid(*[[-GRID_HALF, GRID_HALF]] * 10)).reshape(10, -1).T.astype(np.int32)
    for _ in range(5):
        given, _ = random_regions(rng, 10)
        regions = Regions(corners[17:18].astype(np.int64), given.whitenings[:1], np.zeros(1, dtype=np.int64))
        moved = [regions.sums(totals(regions, row[None], np.zeros(1, dtype=np.int64)))[0] for row in corners]
        assert max(map(square, moved)) <= RADIUS**2


def test_clipping_is_not_idle():
    """Control: the same row without clipping exceeds the bound, so the tests above can fail."""
    whitening = Whitening.from_shape(np.eye(3), np.ones(3), radius=100.0)
    regions = Regions(np.zeros((1, 3), dtype=np.int64), [whitening], np.zeros(1, dtype=np.int64))
    row = np.full((1, 3), GRID_HALF, dtype=np.int32)
    found = regions.sums(totals(regions, row, np.zeros(1, dtype=np.int64)))[0]
    assert square(whitening.products(row.astype(np.int64))[0]) > RADIUS**2 >= square(found)
    np.testing.assert_allclose(found, RADIUS / np.sqrt(3), rtol=1e-6)


@pytest.mark.parametrize("d", [1, 4, 17, 64])
def test_what_a_row_adds_is_its_own(d):
    """Shuffled, one by one and in odd pieces, totals are the sums of what each row adds alone."""
    rng = np.random.default_rng(1)
    regions, domain = random_regions(rng, d)
    rows = np.vstack([adversarial_rows(rng, domain, 100), boundary_rows(rng, regions, 0, 100)])
    cells = rng.integers(4, size=len(rows))
    expected = totals(regions, rows, cells)
    order = rng.permutation(len(rows))
    np.testing.assert_array_equal(expected, totals(regions, rows[order], cells[order]))
    alone = sum(totals(regions, rows[i : i + 1], cells[i : i + 1]) for i in range(len(rows)))
    np.testing.assert_array_equal(expected, alone)


@pytest.mark.parametrize("d", [1, 2, 5, 29])
def test_a_row_is_inside_as_integers_say_however_that_was_found(d):
    """The quick estimate never decides otherwise than the exact length, which Python integers give."""
    rng = np.random.default_rng(d)
    for _ in range(10):
        regions, domain = random_regions(rng, d, cells=1)
        rows = np.vstack([adversarial_rows(rng, domain, 60), boundary_rows(rng, regions, 0, 300)])
        whitening, zoom = regions.whitenings[regions.groups[0]], regions.zooms[0] / ZOOM
        root = np.ceil(np.sqrt(d))
        most = int(np.floor((RADIUS - root) / zoom - root)) ** 2
        offsets = (rows - regions.references[0]).astype(object) @ whitening.matrix.T.astype(object)
        for row, offset in zip(rows, offsets, strict=True):
            inside = sum((abs(v) >> whitening.shift) ** 2 for v in offset) <= most
            assert totals(regions, row[None], np.zeros(1, dtype=np.int64))[0, 1] == inside


def test_sums_of_rows_inside_are_their_exact_whitened_sum():
    """Rounded down once, to the lattice, not once a row."""
    rng = np.random.default_rng(3)
    root = rng.normal(size=(6, 6))
    whitening = Whitening.from_shape(root @ root.T + np.eye(6), np.full(6, 1e-5), radius=100.0)
    regions = Regions(
        rng.integers(-9, 9, size=(2, 6)),
        [whitening],
        np.zeros(2, dtype=np.int64),
        np.array([ZOOM, 3 * ZOOM // 2]),
    )
    rows = rng.integers(-50_000, 50_000, size=(1000, 6)).astype(np.int32)
    cells = np.repeat([0, 1], 500)
    total = totals(regions, rows, cells)
    assert (total[:, 0] == total[:, 1]).all()
    offsets = (rows - regions.references[cells]).reshape(2, 500, 6).sum(axis=1).astype(object)
    exact = offsets @ whitening.matrix.T.astype(object)
    assert (regions.sums(total)[0] == exact[0] // 2**whitening.shift).all()
    assert (regions.sums(total)[1] == 3 * exact[1] // 2 ** (whitening.shift + 1)).all()


def test_a_row_that_no_grid_makes_adds_to_the_count_only():
    """The bound does not rest on the module that made the row."""
    whitening = Whitening.from_shape(np.eye(2), [1, 1], 100.0)
    regions = Regions(np.zeros((1, 2), dtype=np.int64), [whitening], np.zeros(1, dtype=np.int64))
    wide = Regions(
        np.zeros((1, 2), dtype=np.int64), [Whitening.from_shape(np.eye(2), [1, 1], 2.0**22)], np.zeros(1, int)
    )
    for row in ([2**21, 0], [-(2**31), 2**31 - 1], [2**20 + 1, 0]):
        for here in (regions, wide):
            total = totals(here, np.array([row], dtype=np.int32), np.zeros(1, dtype=np.int64))
            assert total[0, 0] == 1
            assert not total[0, 1:].any()


def test_lengths_that_would_overflow_float64_are_measured_in_integers():
    """At d = 2,047, with every feature as far out as it gets, the bound holds."""
    d = 2047
    whitening = Whitening.from_shape(np.eye(d), np.ones(d), radius=1.0)
    regions = Regions(np.full((1, d), -GRID_HALF), [whitening], np.zeros(1, dtype=np.int64))
    rows = np.random.default_rng(0).integers(GRID_HALF - 5, GRID_HALF, size=(5, d)).astype(np.int32)
    for row in rows:
        moved = regions.sums(totals(regions, row[None], np.zeros(1, dtype=np.int64)))[0]
        assert 0.99 * RADIUS**2 < square(moved) <= RADIUS**2


def test_regions_that_would_not_be_exact_are_refused():
    """Sizes are asserted on public state, before any row is seen."""
    whitening = Whitening.from_shape(np.eye(1), [1], 100.0)
    one = np.zeros(1, dtype=np.int64)
    with pytest.raises(InvalidArgument, match=r"^references=<array> is not valid: expected grid values"):
        Regions(np.array([[2**19 + 1]]), [whitening], one)
    with pytest.raises(InvalidArgument, match=r"^zooms=<array> is not valid: expected factors of 1 to 1024"):
        Regions(np.array([[0]]), [whitening], one, np.array([ZOOM - 1]))
    with pytest.raises(InvalidArgument, match=r"^zooms=<array of shape \(1,\)>"):
        Regions(np.array([[0], [1]]), [whitening], np.zeros(2, dtype=np.int64), np.array([ZOOM]))
    with pytest.raises(InvalidArgument, match=r"^groups=<array>"):
        Regions(np.array([[0], [1]]), [whitening], one)
    with pytest.raises(InvalidArgument, match=r"^rows=<table of 2 columns> .* expected 1 columns"):
        totals(Regions(np.array([[0]]), [whitening], one), np.zeros((9, 2), dtype=np.int32), np.zeros(9, int))
    with pytest.raises(InvalidArgument, match=r"^cells=<another length>"):
        totals(Regions(np.array([[0]]), [whitening], one), np.zeros((9, 1), dtype=np.int32), np.zeros(8, int))
