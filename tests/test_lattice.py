"""Whitened coordinates: exact products, full rank, sizes."""

import numpy as np
import pytest

from huemeans import Domain, InvalidArgument
from huemeans.lattice import MOST_OFFSET, MOST_ROWS, RADIUS, ZOOM, Whitening, blas_is_exact


def random_whitening(rng, d):
    """Return a whitening of random shape, spread over up to twelve orders of magnitude, and its domain."""
    root = rng.normal(size=(d, d)) * 10 ** rng.uniform(-3, 3, size=d)
    domain = Domain(-(10 ** rng.uniform(-2, 4, size=d)), 10 ** rng.uniform(-2, 4, size=d))
    return Whitening.from_shape(root @ root.T, domain.step, radius=10 ** rng.uniform(-3, 3)), domain


@pytest.mark.parametrize("size", [2**20, 2**28, 2**28 + 1, MOST_ROWS * MOST_OFFSET - 1])
@pytest.mark.parametrize("zoomed", [False, True])
def test_products_equal_exact_integer_arithmetic(size, zoomed):
    """Sums of offsets of any possible size, times W and a zoom, rounded down, as Python integers give it."""
    rng = np.random.default_rng(2)
    for _ in range(5):
        whitening, _ = random_whitening(rng, 7)
        wide = np.linalg.norm(whitening.scaled, 2) / RADIUS * size
        limit = max(
            1, int(size / max(1.0, wide / MOST_ROWS * 32))
        )  # rows inside their region add up to no more
        sums = rng.integers(-limit, limit, size=(20, 7), endpoint=True)
        zooms = rng.integers(ZOOM, 30 * ZOOM, size=20) if zoomed else None
        factor = np.full(20, ZOOM, dtype=object) if zooms is None else zooms.astype(object)
        exact = (sums.astype(object) @ whitening.matrix.T.astype(object)) * factor[:, None]
        expected = exact // (ZOOM * 2**whitening.shift)
        assert (whitening.products(sums, zooms) == expected).all()


def test_coloring_undoes_whitening():
    """Products come back to the sums, within the step that rounding takes."""
    rng = np.random.default_rng(3)
    root = rng.normal(size=(6, 6))
    whitening = Whitening.from_shape(root @ root.T + np.eye(6), np.full(6, 1e-5), radius=100.0)
    sums = rng.integers(-50_000_000, 50_000_000, size=(10, 6))
    back = whitening.color(whitening.products(sums))
    np.testing.assert_allclose(sums, back, atol=np.abs(whitening.inverse).sum(axis=1).max())


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
