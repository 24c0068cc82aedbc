"""Colored noise: its covariance, its sensitivity, its lattice, and what it refuses."""

import numpy as np
import pytest
from scipy import stats

from huemeans import Accountant, BudgetExceeded, ColoredGaussian, InvalidArgument, UnprotectedDirection
from huemeans.discretization import Draws
from huemeans.entropy import OperatingSystem
from huemeans.noise import STEPS, noisy_sum

ALARM = 1e-6


def random_covariance(d, seed=0):
    """Return a covariance whose features differ in scale by six orders of magnitude."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d)) * 10 ** rng.uniform(-3, 3, size=(d, 1))
    return root @ root.T


def covariance_p_value(sample, covariance):
    """Return the p-value of H0: zero-mean normal of this covariance, by whitening and a chi-square.

    The statistic sums the squared standardized entries of the whitened second moment: variance 2/n on
    the diagonal and 1/n off it.
    """
    n, d = sample.shape
    scale = np.sqrt(np.diag(covariance))
    root = np.linalg.cholesky(covariance / np.outer(scale, scale))
    white = np.linalg.solve(root, (sample / scale).T)
    moment = white @ white.T / n - np.eye(d)
    off = moment[np.triu_indices(d, 1)]
    statistic = n * ((np.diag(moment) ** 2).sum() / 2 + (off**2).sum())
    return stats.chi2.sf(statistic, d * (d + 1) / 2)


@pytest.mark.parametrize("d", [1, 2, 8])
def test_draws_have_the_covariance_asked_for(d):
    """100,000 draws pass; the same draws 1.05 times as large, or white ones, are rejected."""
    covariance = random_covariance(d)
    sample = np.asarray(ColoredGaussian(covariance).draw(100_000))
    assert covariance_p_value(sample, covariance) > ALARM
    assert covariance_p_value(1.05 * sample, covariance) < ALARM
    if d > 1:
        white = np.sqrt(np.trace(covariance) / d) * np.random.default_rng(0).normal(size=sample.shape)
        assert covariance_p_value(white, covariance) < ALARM


def test_releases_are_the_value_plus_that_noise():
    """20,000 releases minus the value have the covariance; without noise they would be rejected."""
    covariance, value = random_covariance(3), np.array([1e3, -2.0, 0.5])
    noise = ColoredGaussian(covariance)
    errors = np.array([noise.release(value, np.zeros((1, 3))) for _ in range(20_000)]) - value
    assert covariance_p_value(errors, covariance) > ALARM
    assert covariance_p_value(0.9 * errors, covariance) < ALARM


def test_sensitivity_is_the_mahalanobis_length():
    """It equals sqrt(d' S^-1 d) for one difference and for many."""
    covariance = random_covariance(5, seed=3)
    differences = np.random.default_rng(1).normal(size=(7, 5)) * np.sqrt(np.diag(covariance))
    expected = np.sqrt(np.einsum("ij,ij->i", differences, np.linalg.solve(covariance, differences.T).T))
    noise = ColoredGaussian(covariance)
    np.testing.assert_allclose(expected, noise.sensitivity(differences), rtol=1e-6)
    assert noise.sensitivity(differences[0]) == pytest.approx(expected[0], rel=1e-6)
    assert isinstance(noise.sensitivity(differences[0]), float)


SINGULAR = {
    "zero column": (np.diag([4.0, 0.0]), [2.0, 0.0], [0.0, 1e-300]),
    "collinear": (np.outer([1, 2, 3], [1, 2, 3]) * 0.01, [0.1, 0.2, 0.3], [0.1, 0.2, 0.3 + 1e-9]),
    "all zero": (np.zeros((2, 2)), [0.0, 0.0], [0.0, 1.0]),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_outside_the_span_sensitivity_is_infinite_and_release_refuses(name):
    """A direction without noise costs infinitely much; inside the span all is finite."""
    covariance, inside, outside = SINGULAR[name]
    noise = ColoredGaussian(covariance)
    assert np.isfinite(noise.sensitivity(inside))
    assert noise.sensitivity(outside) == np.inf
    value = np.ones(len(inside))
    assert np.isfinite(noise.release(value, [inside])).all()
    with pytest.raises(UnprotectedDirection, match="publish it bare"):
        noise.release(value, [inside, outside])


def test_a_rank_deficient_covariance_noises_its_span_only():
    """Rank 1 in 3 dimensions: every error is a multiple of the one direction."""
    noise = ColoredGaussian(np.outer([1, 2, 3], [1, 2, 3]))
    errors = np.array([noise.release([5.0, 5.0, 5.0], [[1, 2, 3]]) for _ in range(200)]) - 5
    assert noise.rank == 1
    np.testing.assert_allclose(errors, errors[:, :1] * [1, 2, 3], atol=1e-6)
    assert errors[:, 0].std() > 0.5


def test_tiny_directions_keep_their_noise():
    """Column scales of 1e9, 1, 1e-4 and 1e-9 lose no direction."""
    covariance = np.diag([1e18, 1.0, 1e-8, 1e-18])
    noise = ColoredGaussian(covariance)
    assert noise.rank == 4
    np.testing.assert_allclose(1.0, noise.sensitivity(np.diag([1e9, 1.0, 1e-4, 1e-9])))


def test_the_lattice_sensitivity_is_barely_above_the_real_one():
    """Rounding adds at most sqrt(rank) steps, and neighbors on the same point cost nothing."""
    covariance = random_covariance(6, seed=9)
    scale = np.sqrt(np.diag(covariance))
    rng = np.random.default_rng(2)
    value, differences = rng.normal(size=6) * scale * 100, rng.normal(size=(50, 6)) * scale * 0.1
    noise = ColoredGaussian(covariance)
    real = noise.sensitivity(differences).max()
    assert abs(noise.lattice_sensitivity(value, differences) - real) <= np.sqrt(6) / STEPS + 1e-9 * real
    assert noise.lattice_sensitivity(value, np.zeros((3, 6))) == 0


def test_released_points_lie_on_a_lattice_that_does_not_depend_on_the_value():
    """Whitened and divided by the step, releases of two values are integers: low bits reveal nothing."""
    noise = ColoredGaussian([[2.0, 0.0], [0.0, 0.5]])
    for value in ([np.pi, np.e], [1 / 3, 1e-7]):
        released = np.array([noise.release(value, [[0.1, 0.1]]) for _ in range(50)])
        steps = released / np.sqrt([2.0, 0.5]) * STEPS
        assert np.abs(steps - np.rint(steps)).max() < 1e-5
    plain = np.array([np.pi, np.e]) + np.random.default_rng(0).normal(size=(50, 2))
    steps = plain / np.sqrt([2.0, 0.5]) * STEPS
    assert np.abs(steps - np.rint(steps)).max() > 0.1


def test_a_release_costs_the_rank_in_draws():
    """(N, S) of one release follow from the rank."""
    draws = ColoredGaussian(np.diag([1.0, 0.0, 2.0])).draws
    assert (draws.count, float(draws.inverse_square_sum)) == (2, 2 / STEPS**2)


def test_noisy_sums_are_charged_before_they_are_drawn():
    """The accountant sees the part; a refusal draws no bits at all."""

    class Counted(OperatingSystem):
        used = 0

        def words(self, size):
            self.used += size
            return super().words(size)

    accountant, bits = Accountant(4, Draws(6, 1)), Counted()
    options = {"scale": 2**20, "sensitivity_squared": 2**40, "accountant": accountant, "bits": bits}
    total = np.arange(6).reshape(2, 3) * 2**40
    noisy = noisy_sum(total, part="sums", **options)
    assert noisy.shape == (2, 3)
    assert 0 < np.abs(noisy - total).max() < 8 * 2**20
    assert accountant.parts == {"sums": 1}
    before = bits.used
    with pytest.raises(BudgetExceeded):
        noisy_sum(total, part="again", **options)
    assert bits.used == before


@pytest.mark.parametrize(
    ("covariance", "expected"),
    [
        ([[1.0, 0.5], [0.4, 1.0]], "a symmetric matrix"),
        ([[1.0, 2.0], [2.0, 1.0]], "without negative eigenvalues"),
        ([[1.0, -0.6, -0.6], [-0.6, 1.0, -0.6], [-0.6, -0.6, 1.0]], "without negative eigenvalues"),
        ([[-1.0]], "without negative eigenvalues"),
        ([[0.0, 1.0], [1.0, 1.0]], "without negative eigenvalues"),
        ([[1.0, float("nan")], [float("nan"), 1.0]], "finite entries"),
        ([1.0, 2.0], r"a square matrix, \(d, d\)"),
        (np.ones((2, 3)), "a square matrix"),
        (np.empty((0, 0)), "a square matrix"),
        ([["a"]], "real numbers"),
        ([[1j]], "real numbers"),
    ],
)
def test_bad_covariances_are_refused(covariance, expected):
    """The message names covariance, its shape or dtype, what was expected and what to do; no entry."""
    with pytest.raises(
        InvalidArgument, match=rf"^covariance=<array of .*> is not valid: .*{expected}.*\. .*\.$"
    ):
        ColoredGaussian(covariance)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda noise: noise.release([123.25], [[0.0, 0.0]]),
            r"^value=<array of shape \(1,\)> .* shape \(2,\)",
        ),
        (lambda noise: noise.release([123.25, np.nan], [[0.0, 0.0]]), r"^value=.* finite numbers"),
        (lambda noise: noise.release([123.25, 0], [0.0, 0.0]), r"^differences=<array in 1 dimensions>"),
        (lambda noise: noise.release([123.25, 0], [[np.inf, 0]]), r"^differences=.* finite numbers"),
        (lambda noise: noise.sensitivity([1.0]), r"^difference=.* one row per neighbor"),
        (lambda noise: noise.sensitivity(["a", "b"]), r"^difference=.* real numbers"),
        (lambda noise: noise.draw(-1), r"^size=-1 "),
        (lambda noise: noise.draw(1.5), r"^size=1\.5 "),
    ],
)
def test_bad_calls_are_refused_without_a_private_value(call, message):
    """Each message names the argument; none quotes what was to be published."""
    with pytest.raises(InvalidArgument, match=message) as caught:
        call(ColoredGaussian(np.eye(2)))
    assert "123" not in str(caught.value)


def test_printing_shows_no_entry_of_the_covariance():
    """A covariance may itself be private."""
    assert repr(ColoredGaussian([[123.25]])) == "<ColoredGaussian in 1 dimensions, rank 1>"


def test_directions_that_are_singular_by_rounding_keep_noise():
    """Two values that differ by dust in a null direction are both hidden: nothing is compared bare."""
    noise = ColoredGaussian([[1, 1], [1, 1]])
    rng = np.random.default_rng(0)
    for _ in range(200):
        start, other, apart = rng.normal(size=3) * 1e6
        value, neighbor = np.array([start, start + apart]), np.array([other, other + apart])
        reached = noise.lattice_sensitivity(value, [value - neighbor])
        assert reached < 1.01 * noise.sensitivity([start - other] * 2) + 0.01
    null = np.array([noise.release([0.0, 0.0], [[1, 1]]) for _ in range(50)]) @ [1, -1]
    assert 1e-9 < null.std() < 1e-6


def test_values_a_billion_deviations_away_are_released_right():
    """Unix time with noise of half a second: no saturation."""
    released = ColoredGaussian([[0.25]]).release([1.7e9], [[0.1]])
    assert abs(released[0] - 1.7e9) < 10
    assert abs(ColoredGaussian([[1e-10]]).release([1.7e9], [[1e-6]])[0] - 1.7e9) < 1e-3


def test_the_sign_of_zero_is_not_published():
    """A feature without noise is published as it is, but for the sign of a zero."""
    released = ColoredGaussian([[1, 0], [0, 0]]).release([1, -0.0], [[0.1, 0.0]])
    assert not np.signbit(released[1])


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e170, 1e299])
def test_covariances_of_any_size_work(size):
    """Squares that under- or overflow do not decide what is symmetric or positive."""
    noise = ColoredGaussian([[size, 0.3 * size], [0.3 * size, size]])
    assert noise.sensitivity([np.sqrt(size), 0.0]) == pytest.approx(1 / np.sqrt(1 - 0.09))
    with pytest.raises(InvalidArgument, match="symmetric"):
        ColoredGaussian([[size, size], [-size, size]])


def test_tiny_differences_outside_the_span_are_infinite():
    """1e-200 squared is zero, its length is not."""
    assert ColoredGaussian([[1, 1], [1, 1]]).sensitivity([1e-200, -1e-200]) == np.inf
