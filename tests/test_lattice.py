"""Integer contributions: bounded, row-pure, exact."""

import numpy as np
import pytest

from huemeans import Domain, InvalidArgument
from huemeans.domain import GRID_HALF
from huemeans.lattice import MOST_OFFSET, RADIUS, Whitening, blas_is_exact, clipped

ODD = np.array([0.0, -0.0, 5e-324, -2.2e-308, 1e308, -1e308, np.nan, np.inf, -np.inf, 1.0, -1.0, 0.5, 1e-9])


def exact_square(rows):
    """Return squared lengths in Python integers."""
    return [sum(int(v) ** 2 for v in row) for row in rows]


def random_whitening(rng, d):
    """Return a whitening of random shape, spread over up to twelve orders of magnitude, and its domain."""
    root = rng.normal(size=(d, d)) * 10 ** rng.uniform(-3, 3, size=d)
    domain = Domain(-(10 ** rng.uniform(-2, 4, size=d)), 10 ** rng.uniform(-2, 4, size=d))
    return Whitening.from_shape(root @ root.T, domain.step, radius=10 ** rng.uniform(-3, 3)), domain


def adversarial_rows(rng, domain, size):
    """Return rows of odd floats, of corners of the box, and of values just around the bounds."""
    d = domain.n_features
    odd = rng.choice(ODD, size=(size, d))
    corners = np.where(rng.random((size, d)) < 0.5, domain.lower, domain.upper)
    nudged = np.nextafter(corners, rng.choice([-np.inf, np.inf], size=(size, d)))
    return np.concatenate([odd, corners, nudged])


@pytest.mark.parametrize("d", [1, 2, 3, 8, 29])
def test_no_row_contributes_more_than_the_radius(d):
    """Over 100,000 adversarial rows in all, the squared integer length never exceeds RADIUS^2."""
    rng = np.random.default_rng(d)
    for _ in range(20):
        whitening, domain = random_whitening(rng, d)
        grid, _ = domain.to_grid(adversarial_rows(rng, domain, 334))
        reference, _ = domain.to_grid(domain.lower + (domain.upper - domain.lower) * rng.random((1, d)))
        y = whitening.contribution(grid.astype(np.int64) - reference)
        assert max(exact_square(y)) <= RADIUS**2


def test_every_corner_of_the_box_is_bounded():
    """All 2^10 corners of a ten-dimensional box, seen from another corner, which is as far as rows get."""
    rng = np.random.default_rng(0)
    corners = np.array(np.meshgrid(*[[-GRID_HALF, GRID_HALF]] * 10)).reshape(10, -1).T
    for _ in range(5):
        whitening, _ = random_whitening(rng, 10)
        assert max(exact_square(whitening.contribution(corners - corners[17]))) <= RADIUS**2


def test_clipping_is_not_idle():
    """Control: the same rows without clipping exceed the bound, so the tests above can fail."""
    whitening = Whitening.from_shape(np.eye(3), np.ones(3), radius=100.0)
    rows = np.full((1, 3), MOST_OFFSET)
    raw = rows @ whitening.matrix.T // 2**whitening.shift
    assert exact_square(raw)[0] > RADIUS**2 >= exact_square(whitening.contribution(rows))[0]


def test_a_contribution_is_a_function_of_its_row_alone():
    """Shuffled, one by one, in Fortran order and in odd chunks, every row gives the same integers."""
    rng = np.random.default_rng(1)
    whitening, _ = random_whitening(rng, 17)
    rows = rng.integers(-MOST_OFFSET, MOST_OFFSET, size=(500, 17), endpoint=True)
    expected = whitening.contribution(rows)
    order = rng.permutation(500)
    np.testing.assert_array_equal(expected[order], whitening.contribution(rows[order]))
    np.testing.assert_array_equal(expected, whitening.contribution(np.asfortranarray(rows)))
    pieces = np.split(rows, [1, 8, 9, 77, 300])
    np.testing.assert_array_equal(expected, np.vstack([whitening.contribution(piece) for piece in pieces]))


def test_products_equal_exact_integer_arithmetic():
    """Before clipping, float64 products are what Python integers give."""
    rng = np.random.default_rng(2)
    whitening, _ = random_whitening(rng, 29)
    rows = rng.choice([-MOST_OFFSET, MOST_OFFSET], size=(50, 29))
    exact = rows.astype(object) @ whitening.matrix.T.astype(object)
    floats = rows.astype(float) @ whitening.matrix.T.astype(float)
    assert (floats.astype(np.int64) == exact).all()


def test_short_rows_pass_unclipped_and_long_rows_keep_their_direction():
    """A row inside is untouched; a row outside comes to the sphere, within a step per coordinate."""
    z = np.array([[3.0, -4.0], [RADIUS, 0.0], [2.0**40, 2.0**40], [-(2.0**52), 2.0**51]])
    y = clipped(z)
    assert y[0].tolist() == [3, -4]
    for row, image in zip(z[1:], y[1:], strict=True):
        expected = row / np.linalg.norm(row) * RADIUS
        assert np.abs(image - expected).max() <= 2


def test_lengths_that_would_overflow_float64_are_measured_in_integers():
    """At d = 2,047 with entries of 2^26 the squares fill 63 bits, and the bound still holds."""
    z = np.full((2, 2047), 2.0**26 - 1)
    z[1] *= 2.0**25
    assert max(exact_square(clipped(z))) <= RADIUS**2


def test_coloring_undoes_whitening():
    """Sums of unclipped rows come back to the rows' own sum, within the truncation of a step a row."""
    rng = np.random.default_rng(3)
    root = rng.normal(size=(6, 6))
    whitening = Whitening.from_shape(root @ root.T + np.eye(6), np.full(6, 1e-5), radius=100.0)
    rows = rng.integers(-50_000, 50_000, size=(1000, 6))
    back = whitening.color(whitening.contribution(rows).sum(axis=0))
    np.testing.assert_allclose(
        rows.sum(axis=0), back, atol=1000 * np.abs(whitening.inverse).sum(axis=1).max()
    )


def test_released_covariance_has_the_shape_asked_for():
    """In grid steps, noise of scale s has covariance (s r / RADIUS)^2 A, to the rounding of W."""
    shape = np.array([[4.0, 1.0], [1.0, 0.5]])
    step = np.array([1e-4, 1e-5])
    whitening = Whitening.from_shape(shape, step, radius=2.0)
    raw = whitening.covariance(2**30) * np.outer(step, step)
    np.testing.assert_allclose((2**30 * 2.0 / RADIUS) ** 2 * shape, raw, rtol=1e-6)


@pytest.mark.parametrize("shape", [np.zeros((3, 3)), np.diag([1.0, 1e-40, 0.0]), np.ones((3, 3)) * 1e18])
def test_flat_shapes_are_widened_and_never_left_without_noise(shape):
    """A degenerate clip region still has an invertible W and positive noise in every direction."""
    whitening = Whitening.from_shape(shape, np.full(3, 1e-6), radius=1.0)
    assert np.linalg.matrix_rank(whitening.matrix.astype(float)) == 3
    assert np.linalg.eigvalsh(whitening.covariance(2**26)).min() > 0


@pytest.mark.parametrize("d", [64, 512])
def test_many_features_fit_into_the_sizes(d):
    """The asserted sizes hold for wide tables of extreme shapes, and W keeps its rank."""
    rng = np.random.default_rng(d)
    root = rng.normal(size=(d, d)) * 10 ** rng.uniform(-4, 4, size=d)
    whitening = Whitening.from_shape(root @ root.T, np.ones(d), radius=1.0)
    assert np.linalg.svd(whitening.matrix.astype(float), compute_uv=False).min() >= 2**6


def test_a_whitening_that_would_not_be_exact_is_refused():
    """Sizes are asserted on public state, before any row is seen."""
    with pytest.raises(InvalidArgument, match=r"^whitening=<W of shape \(1, 1\), shift 0>"):
        Whitening(np.array([[2**33]]), 0)
    with pytest.raises(InvalidArgument, match=r"^whitening="):
        Whitening(np.array([[2**44]]), 0)  # 2^44 * 2^20 wraps to zero in int64
    with pytest.raises(InvalidArgument, match=r"^radius=0 "):
        Whitening.from_shape(np.eye(2), np.ones(2), radius=0)


def test_the_blas_in_use_is_exact():
    """The check that runs at import passes here."""
    assert blas_is_exact()


@pytest.mark.parametrize("row", [[np.nan, 0.0], [1e300, -1e300], [np.inf, 1.0], [0.5, 0.0], [2.0**21, 0.0]])
def test_what_no_grid_makes_contributes_zero(row):
    """The bound does not rest on the module that made the row."""
    whitening = Whitening.from_shape(np.eye(2), [1, 1], 100.0)
    assert whitening.contribution([row, [1, 1]])[0].tolist() == [0, 0]
    assert clipped(np.array([[np.nan, 1.0], [2.0**61, 0.0]])).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("radius", [1e-30, 1.0, 1e12, 1e30, 1e100])
def test_any_radius_gives_an_invertible_whitening(radius):
    """A radius far beyond every offset clips nobody and still has noise in every direction."""
    whitening = Whitening.from_shape(np.diag([1.0, 1e-6]), [1.0, 1e-9], radius)
    assert np.linalg.svd(whitening.matrix.astype(float), compute_uv=False).min() >= 2**6


@pytest.mark.parametrize(
    ("shape", "step"), [([[1, 2], [3, 4]], [1, 1]), (np.eye(2), [1, 0]), (np.full((2, 2), np.nan), [1, 1])]
)
def test_bad_shapes_and_steps_are_refused(shape, step):
    """Asymmetric, non-finite or empty public state is an error before any row."""
    with pytest.raises(InvalidArgument, match=r"^(shape|step)="):
        Whitening.from_shape(shape, step, 1.0)
