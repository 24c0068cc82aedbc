"""What it costs that the noise is a discrete Gaussian on the integers and not a continuous one.

Call *ideal* the release whose draws are rounded continuous Gaussians.  An integer plus such a draw is the
rounding of the integer plus a Gaussian, so the ideal release is exactly mu-Gaussian-DP.  The real release
draws from N_Z(0, s^2), the discrete Gaussian, instead.

Lemma D.  For P = N_Z(0, s^2), Q = the law of round(s Z) and every integer k,
``-k^2 / (24 s^4) - 3 exp(-2 pi^2 s^2) <= ln(P(k) / Q(k)) <= 1 / (24 s^2 - 1)``.

Theorem D.  If on every path a fit makes at most N draws, each of scale s_i >= 2^16, with
sum 1/s_i^2 <= S, and the ideal fit is mu-GDP, then for every T >= 2 and e0 >= 0 the real fit is
(epsilon, delta)-DP with::

    epsilon = e0 + 1.001 (1 + T^2) S / 24
    delta   = e^(S/23) (delta_mu(e0) + e^e0 * 2 N Phi(-(T - 2^-16)))

The charge is a ratio bound: at 10^5 draws of scale 2^20 it is about 3e-7 in epsilon.  A bound by total
variation would need scales near 2^26 for the same, since it is multiplied by e^epsilon.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from huemeans import checks
from huemeans.calibrate import delta_at, epsilon_at, whitened_limit

LEAST_SCALE: Final = 2**16

_TAIL_SHARE: Final = 0.001  # of delta, for the draws that fall beyond T standard deviations
_IDEAL_SHARE: Final = 0.998  # of delta, for the ideal fit; e^(S/23) fits into what is left
_EDGE: Final = 2.0**-16
_TAILS: Final = 2 + np.arange(301) / 8
_MOST_INVERSE_SQUARE_SUM: Final = 0.02  # e^(0.02/23) * 0.999 < 1


@dataclass(frozen=True)
class Draws:
    """How many discrete Gaussians a fit may draw (N) and the sum of their 1/s^2 (S), on every path."""

    count: int
    inverse_square_sum: Fraction

    def __post_init__(self) -> None:
        """Refuse negative figures."""
        count = checks.integer("count", self.count, least=0, remedy="Pass the number of draws")
        if not 0 <= self.inverse_square_sum < math.inf:
            found = repr(float(self.inverse_square_sum))
            checks.refuse("inverse_square_sum", found, "a sum of squares", "Add up 1/s^2 over all draws")
        object.__setattr__(self, "count", count)
        object.__setattr__(self, "inverse_square_sum", Fraction(self.inverse_square_sum))


def epsilon_charge(epsilon: float, delta: float, draws: Draws) -> float:
    """Return the part of ``epsilon`` that the discreteness of the draws may use up (Theorem D)."""
    if draws.inverse_square_sum > _MOST_INVERSE_SQUARE_SUM:
        found, most = repr(float(draws.inverse_square_sum)), f"at most {_MOST_INVERSE_SQUARE_SUM}"
        checks.refuse("inverse_square_sum", found, most, "Use larger scales or fewer draws")
    if draws.count == 0:
        return 0.0
    tail = _tail_cut(epsilon, delta, draws.count)
    return 1.001 * (1 + tail**2) * float(draws.inverse_square_sum) / 24


def largest_mu(epsilon: float, delta: float, draws: Draws) -> float:
    """Return the largest mu for which a mu-GDP ideal fit is really (epsilon, delta)-DP.

    Examples
    --------
    >>> a_hundred_thousand = Draws(10**5, Fraction(10**5, 2**40))
    >>> exact, real = whitened_limit(1.0, 1e-9, "dp"), largest_mu(1.0, 1e-9, a_hundred_thousand)
    >>> 0 < exact / real - 1 < 1e-3
    True
    """
    eps, dlt = checks.epsilon(epsilon), checks.delta(delta)
    ideal = eps - epsilon_charge(eps, dlt, draws)
    if ideal <= 0:
        checks.refuse(
            "epsilon", repr(epsilon), "more than what the discreteness of the noise costs", "Raise epsilon"
        )
    return whitened_limit(ideal, _IDEAL_SHARE * dlt, "dp")


def real_epsilon(mu: float, delta: float, draws: Draws) -> float:
    """Return an epsilon at which a fit whose ideal is mu-GDP is really (epsilon, delta)-DP.

    It inverts ``largest_mu`` from above: the tail cut is taken one unit of epsilon further out.
    """
    ideal = epsilon_at(mu, _IDEAL_SHARE * checks.delta(delta), "dp")
    charge = epsilon_charge(ideal + 1, delta, draws)
    if charge > 1:
        checks.refuse("mu", repr(mu), "a charge for discreteness below 1", "Use larger scales")
    return ideal + charge


def real_delta(mu: float, epsilon: float, draws: Draws) -> float:
    """Return the delta of Theorem D at ``epsilon`` for a fit whose ideal is mu-GDP; at most 1.

    The free T is chosen on a grid, so the result is the theorem's bound up to the grid and never below it.
    """
    if draws.count == 0:
        return delta_at(mu, epsilon, "dp")
    sum_ = float(draws.inverse_square_sum)
    ideal = epsilon - 1.001 * (1 + _TAILS**2) * sum_ / 24
    tails, ideal = _TAILS[ideal >= 0], ideal[ideal >= 0]
    if not len(tails):
        return 1.0
    log_tail = ideal + math.log(2 * draws.count) + log_ndtr(-(tails - _EDGE))
    bounds = math.exp(sum_ / 23) * (delta_at(mu, ideal, "dp") + np.exp(np.minimum(log_tail, 0.0)))
    return min(1.0, float(bounds.min()))


def _tail_cut(epsilon: float, delta: float, count: int) -> float:
    """Return the least T >= 2 with e^epsilon * 2 N Phi(-(T - 2^-16)) <= delta / 1000, in log space."""
    log_tail = math.log(_TAIL_SHARE) + math.log(delta) - epsilon - math.log(2 * count)
    return max(2.0, _EDGE - float(ndtri_exp(log_tail)) * (1 + 1e-12))
