"""The sampler that ships, against the exact law: chi-square, tails, rational arithmetic, opendp.

Each statistical test fails by chance with probability below 1e-6, and has a control that it rejects.
"""

from fractions import Fraction

import mpmath
import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

from huemeans import InvalidArgument
from huemeans.entropy import OperatingSystem, Seeded
from huemeans.sampler import _exact_coin, discrete_gaussian, exp_bounds

ALARM = 1e-6
SIZE = 400_000


def draw(scale, size=SIZE, **options):
    """Draw from the production sampler with the operating system's bits."""
    return discrete_gaussian(scale, size, OperatingSystem(), **options)


def pmf(scale, reach):
    """Return the exact law on -reach..reach."""
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-(k**2) / (2 * scale**2))
    return weights / weights.sum()


def chi_square(sample, scale):
    """Return the p-value of a sample against N_Z(0, scale^2), rare values lumped together."""
    reach = int(12 * scale)
    law = pmf(scale, reach)
    counts = np.bincount(np.clip(sample + reach, 0, 2 * reach), minlength=2 * reach + 1)
    common = law * len(sample) > 20
    observed = np.append(counts[common], counts[~common].sum())
    expected = np.append(law[common], law[~common].sum()) * len(sample)
    return stats.chisquare(observed, expected).pvalue


@pytest.mark.parametrize("scale", [1, 2, 3, 5, 11])
def test_small_scales_follow_the_exact_law(scale):
    """Chi-square against the exact probabilities, value by value."""
    assert chi_square(draw(scale), scale) > ALARM


@pytest.mark.parametrize("scale", [3, 11])
def test_a_scale_off_by_five_percent_is_rejected(scale):
    """Control: the same sample is rejected against a law 1.05 times as wide."""
    assert chi_square(draw(scale), 1.05 * scale) < ALARM


@pytest.mark.parametrize("scale", [2**16, 2**20, 2**26, 2**30, 3 * 2**35 + 1])
def test_large_scales_follow_the_normal_law(scale):
    """64 quantile bins, the low six bits and their independence of the sign: all uniform."""
    sample = draw(scale)
    bins = np.bincount((stats.norm.cdf(sample / scale) * 64).astype(int), minlength=64)
    assert stats.chisquare(bins).pvalue > ALARM
    low = np.bincount(sample & 63, minlength=64)
    assert stats.chisquare(low).pvalue > ALARM
    wide = np.bincount((stats.norm.cdf(sample / scale / 1.05) * 64).astype(int), minlength=64)
    assert stats.chisquare(wide).pvalue < ALARM


def test_the_tails_are_as_heavy_as_they_should_be():
    """Beyond 2, 3 and 4 standard deviations the counts are binomial; 1.05 times the scale is rejected."""
    sample = np.abs(draw(2**20, 4_000_000)) / 2**20
    for cut in (2, 3, 4):
        beyond, share = int((sample > cut).sum()), 2 * stats.norm.sf(cut)
        assert stats.binomtest(beyond, len(sample), share).pvalue > ALARM
    assert stats.binomtest(int((sample > 3).sum()), len(sample), 2 * stats.norm.sf(3 / 1.05)).pvalue < ALARM


def test_neighboring_draws_are_independent():
    """The contingency table of successive draws shows no dependence; a repeated draw is rejected."""
    sample = np.clip(draw(2), -3, 3) + 3
    assert stats.chi2_contingency(table(sample[::2], sample[1::2])).pvalue > ALARM
    assert stats.chi2_contingency(table(sample[::2], sample[::2])).pvalue < ALARM


def table(first, second):
    """Return the joint counts of two samples on 0..6."""
    return np.histogram2d(first, second, bins=np.arange(8) - 0.5)[0]


def test_opendp_draws_from_the_same_law():
    """A two-sample chi-square with an independent implementation; half a scale more is rejected."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    theirs = np.array(dp.m.make_gaussian(*space, scale=4.0)([0] * 100_000))
    for scale, agrees in ((4, True), (6, False)):
        pair = [np.bincount(np.clip(x, -10, 10) + 10, minlength=21) for x in (theirs, draw(scale, 100_000))]
        assert (stats.chi2_contingency(np.array(pair)).pvalue > ALARM) == agrees


@pytest.mark.parametrize("scale", [1, 3, 7, 1000, 2**20 + 7])
@pytest.mark.parametrize("margin", [0.0, 2.0**-20, 2.0**-6])
def test_floats_never_decide(scale, margin):
    """However many coins are tossed in rational arithmetic, the draws from the same bits are the same."""
    usual = discrete_gaussian(scale, 3000, Seeded(5))
    np.testing.assert_array_equal(usual, discrete_gaussian(scale, 3000, Seeded(5), margin=margin))


@pytest.mark.parametrize(
    "gamma", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(47, 3), Fraction(1, 2**40)]
)
@pytest.mark.parametrize("precision", [64, 192])
def test_exponential_bounds_enclose_and_are_close(gamma, precision):
    """The rationals lie around exp(-gamma) and closer together than was asked."""
    low, high = exp_bounds(gamma, precision)
    with mpmath.workdps(100):
        exact = mpmath.exp(-mpmath.mpf(gamma.numerator) / gamma.denominator)
        assert mpmath.mpf(low.numerator) / low.denominator <= exact
        assert exact <= mpmath.mpf(high.numerator) / high.denominator
    assert 0 <= high - low < Fraction(1, 2**precision)


class Words:
    """A bit source that plays back given words."""

    def __init__(self, *words):
        self.queue = list(words)

    def words(self, size):
        """Return the next words."""
        return np.array([self.queue.pop(0) for _ in range(size)], dtype=np.uint64)


def test_a_coin_on_the_edge_draws_more_bits():
    """When 64 bits lie around exp(-gamma), the next word decides, above and below."""
    edge = int(exp_bounds(Fraction(1), 256)[0] * 2**64)
    assert _exact_coin(edge, Fraction(1), Words(0)) is True
    assert _exact_coin(edge, Fraction(1), Words(2**64 - 1)) is False
    assert _exact_coin(edge - 1, Fraction(1), Words()) is True
    assert _exact_coin(edge + 1, Fraction(1), Words()) is False


def test_sizes_of_zero_and_one_work():
    """No draws give an empty array, one draw an array of one."""
    assert draw(5, 0).shape == (0,)
    assert draw(5, 1).shape == (1,)


@pytest.mark.parametrize("scale", [0, -1, 2.5, 2**53, True])
def test_bad_scales_are_refused(scale):
    """The message names scale and its value."""
    with pytest.raises(InvalidArgument, match=r"^scale="):
        draw(scale, 1)
