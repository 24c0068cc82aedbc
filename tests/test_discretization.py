"""Lemma D over all k, Theorem D above the exact profile and below the total-variation route."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from huemeans import InvalidArgument, whitened_limit
from huemeans.discretization import Draws, epsilon_charge, largest_mu, real_delta, real_epsilon


def theta(scale):
    """Return the normalizer of N_Z(0, s^2) divided by s sqrt(2 pi), by Poisson summation."""
    return 1 + 2 * sum(mpmath.exp(-2 * mpmath.pi**2 * scale**2 * j**2) for j in range(1, 12))


def log_ratio(k, scale):
    """Return ln(P(k) / Q(k)) at the working precision."""
    s = mpmath.mpf(scale)
    discrete = mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * s**2)) / (s * mpmath.sqrt(2 * mpmath.pi) * theta(s))
    low, high = (k - mpmath.mpf(1) / 2) / s, (k + mpmath.mpf(1) / 2) / s
    rounded = (mpmath.erfc(low / mpmath.sqrt(2)) - mpmath.erfc(high / mpmath.sqrt(2))) / 2
    return mpmath.log(discrete / rounded)


def lemma_bounds(k, scale):
    """Return the two sides of Lemma D."""
    s = mpmath.mpf(scale)
    below = -(mpmath.mpf(k) ** 2) / (24 * s**4) - 3 * mpmath.exp(-2 * mpmath.pi**2 * s**2)
    return below, 1 / (24 * s**2 - 1)


@pytest.mark.parametrize("scale", [1, 2, 3, 7, 16])
def test_lemma_d_holds_for_all_k_at_small_scales(scale):
    """Every k out to 11 standard deviations obeys both sides, and the upper side is nearly attained."""
    with mpmath.workdps(80):
        ratios = [log_ratio(k, scale) for k in range(11 * scale + 1)]
        for k, ratio in enumerate(ratios):
            below, above = lemma_bounds(k, scale)
            assert below <= ratio <= above
        assert max(ratios) * 24 * scale**2 > 0.97


@pytest.mark.parametrize("scale", [2**16, 2**20, 2**30])
def test_lemma_d_holds_at_production_scales(scale):
    """At the scales that ship, k from 0 to 11 standard deviations in 45 places obeys both sides."""
    with mpmath.workdps(120):
        for step in range(45):
            k = scale * step // 4
            below, above = lemma_bounds(k, scale)
            assert below <= log_ratio(k, scale) <= above


def test_half_the_lemmas_bound_would_be_violated():
    """Control: the upper bound cannot be halved, so the test above can fail."""
    with mpmath.workdps(60):
        assert log_ratio(0, 4) > lemma_bounds(0, 4)[1] / 2


def exact_profile(scale, shift, epsilon):
    """Return the exact hockey-stick divergence between N_Z and its shift, by summation."""
    k = np.arange(-40 * scale, 40 * scale + 1)
    log_p = -(k**2) / (2 * scale**2)
    log_p -= np.logaddexp.reduce(log_p)
    log_q = -((k - shift) ** 2) / (2 * scale**2) + (log_p.max() - 0.0)
    gap = np.exp(log_p) - np.exp(epsilon + log_q)
    return math.fsum(gap[gap > 0])


SINGLE_SHIFTS = [(4, 1), (4, 3), (16, 2), (16, 8), (16, 20), (64, 7), (64, 64)]


@pytest.mark.parametrize(("scale", "shift"), SINGLE_SHIFTS)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_theorem_d_is_above_the_exact_profile_of_single_shifts(scale, shift, epsilon):
    """One discrete Gaussian, shifted: its exact delta never exceeds the theorem's."""
    bound = real_delta(shift / scale, epsilon, Draws(1, Fraction(1, scale**2)))
    assert exact_profile(scale, shift, epsilon) <= bound * (1 + 1e-9)


@pytest.mark.parametrize(("scale", "shift"), [(16, 2), (16, 8), (64, 7), (64, 20)])
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_theorem_d_is_below_the_total_variation_route(scale, shift, epsilon):
    """Adding total variation, (1 + e^epsilon) * 0.0202 / s^2, costs far more."""
    total_variation = (1 + math.exp(epsilon)) * 0.0202 / scale**2
    theorem = real_delta(shift / scale, epsilon, Draws(1, Fraction(1, scale**2)))
    ideal = real_delta(shift / scale, epsilon, Draws(0, Fraction(0)))
    assert theorem - ideal < total_variation / 2


def test_the_charge_is_what_the_proof_says():
    """At 10^5 draws, epsilon 1, delta 1e-9: 3e-7 at scale 2^20, 1.9e-5 at 2^17, 7e-5 at 2^16."""
    charges = [epsilon_charge(1.0, 1e-9, Draws(10**5, Fraction(10**5, 4**bits))) for bits in (20, 17, 16)]
    assert charges == pytest.approx([3e-7, 1.9e-5, 7.6e-5], rel=0.1)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 5.0, 50.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3])
def test_the_largest_mu_keeps_the_declared_promise(epsilon, delta):
    """Both ways of asking agree that the fit stays within (epsilon, delta), and waste at most 0.1 %."""
    draws = Draws(20_000, Fraction(20_000, 4**20))
    mu = largest_mu(epsilon, delta, draws)
    assert real_delta(mu, epsilon, draws) <= delta
    assert epsilon <= real_epsilon(mu, delta, draws) * (1 + 1e-12) <= epsilon * (1 + 1e-3)
    assert 0.999 < mu / whitened_limit(epsilon, delta, "dp") < 1


def test_without_draws_nothing_but_the_reserve_is_charged():
    """No discrete draw, no charge in epsilon."""
    assert epsilon_charge(1.0, 1e-6, Draws(0, Fraction(0))) == 0


def test_coarse_lattices_are_refused_and_not_ignored():
    """Scales so small that the theorem has no room raise instead of promising."""
    with pytest.raises(InvalidArgument, match=r"^inverse_square_sum=1\.0 "):
        largest_mu(1.0, 1e-6, Draws(1, Fraction(1)))
    with pytest.raises(InvalidArgument, match=r"^inverse_square_sum=-1\.0 "):
        Draws(1, Fraction(-1))
    with pytest.raises(InvalidArgument, match=r"^epsilon=0.001 .*discreteness"):
        largest_mu(0.001, 1e-9, Draws(10**6, Fraction(1, 60)))
    with pytest.raises(InvalidArgument, match=r"^count=-1 "):
        Draws(-1, Fraction(0))
