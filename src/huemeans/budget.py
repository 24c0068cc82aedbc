"""Gaussian-DP budgets: named parts that add up exactly, and an accountant that refuses before a draw.

Parts mu_t compose to mu with mu^2 = sum mu_t^2, and this stays true when a part's scale, shape or very
existence is chosen from earlier noisy answers, provided that the sum never passes mu^2 on any path
(Smith and Thakurta 2022; give the attacker one more draw that tops the shifts up to mu^2, and the loss is
N(mu^2/2, mu^2) on every path).  So the sum is checked before each draw, in exact arithmetic.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from threading import Lock
from types import MappingProxyType
from typing import Final

from huemeans import checks
from huemeans.discretization import LEAST_SCALE, Draws, largest_mu, real_epsilon
from huemeans.errors import BudgetExceeded

SHARES: Final = 1_000_000
"""A budget is split into this many equal parts of mu^2; shares are whole numbers of them."""


@dataclass(frozen=True)
class Budget(Mapping[str, float]):
    """A Gaussian-DP parameter mu split into named parts: a mapping of each part to its own mu.

    The shares are integers and add up to exactly ``SHARES``: what is held back must be named.

    Examples
    --------
    >>> budget = Budget(0.5, {"start": 640_000, "refine": 360_000})
    >>> budget["start"], budget["refine"]
    (0.4, 0.3)
    """

    mu: float
    shares: Mapping[str, int] = field(hash=False)

    def __post_init__(self) -> None:
        """Assert that the named parts are the whole."""
        checks.number("mu", self.mu, above=0, expected="a finite number above 0", remedy="Use largest_mu")
        hint = "Count in millionths of mu squared"
        shares = {
            name: checks.integer(f"share of {name!r}", share, least=0, remedy=hint)
            for name, share in self.shares.items()
        }
        if sum(shares.values()) != SHARES:
            checks.refuse("shares", repr(shares), f"a sum of exactly {SHARES}", "Name what is held back, too")
        object.__setattr__(self, "shares", MappingProxyType(shares))

    def __reduce__(self) -> tuple[type["Budget"], tuple[float, dict[str, int]]]:
        """Let budgets be copied and pickled."""
        return Budget, (self.mu, dict(self.shares))

    @property
    def mu_squared(self) -> Fraction:
        """The whole, exactly."""
        return Fraction(self.mu) ** 2

    def part_squared(self, name: str) -> Fraction:
        """Return the exact mu^2 of one part."""
        return self.mu_squared * self.shares[name] / SHARES

    def __getitem__(self, name: str) -> float:
        """Return the mu of one part, for people to read; mechanisms use ``part_squared``."""
        return self.mu * math.sqrt(self.shares[name] / SHARES)

    def __iter__(self) -> Iterator[str]:
        """Go through the names of the parts."""
        return iter(self.shares)

    def __len__(self) -> int:
        """Count the parts."""
        return len(self.shares)


def scale_for(sensitivity_squared: int, mu_squared: Fraction) -> int:
    """Return the least integer scale s with sensitivity^2 / s^2 <= mu^2, and at least 2^16.

    Examples
    --------
    >>> scale_for(2**60, Fraction(1, 4)) == 2**31
    True
    """
    if mu_squared <= 0:
        checks.refuse("mu_squared", repr(float(mu_squared)), "more than 0", "Give the part a share")
    least = math.isqrt(math.ceil(sensitivity_squared / mu_squared) - 1) + 1 if sensitivity_squared else 0
    return max(LEAST_SCALE, least)


class Accountant:
    """Carries (mu^2, S, N) of a fit and refuses a draw that would pass any of the three.

    Guarantees (each has a test of its name):

    * ``charge`` raises before anything is recorded when the part would not fit;
    * sums are exact: no order of charges and no number of them makes a rounding error;
    * the three caps are fixed at the start and are all that the final guarantee depends on;
    * charges from several threads are checked one after the other.
    """

    def __init__(self, mu_squared: Fraction, draws: Draws) -> None:
        self._lock = Lock()
        self._declared: tuple[float, float] | None = None
        if mu_squared < 0:
            checks.refuse("mu_squared", repr(float(mu_squared)), "0 or more", "Use Accountant.for_epsilon")
        self._caps = (Fraction(mu_squared), draws.inverse_square_sum, Fraction(draws.count))
        self._spent = (Fraction(0), Fraction(0), Fraction(0))
        self._parts: dict[str, Fraction] = {}

    @classmethod
    def for_epsilon(cls, epsilon: float, delta: float, draws: Draws) -> "Accountant":
        """Make the accountant of a fit that must be (epsilon, delta)-DP, discreteness included."""
        accountant = cls(Fraction(largest_mu(epsilon, delta, draws)) ** 2, draws)
        accountant._declared = (epsilon, delta)
        return accountant

    @property
    def parts(self) -> Mapping[str, Fraction]:
        """The mu^2 that each part has spent, exactly."""
        return MappingProxyType(self._parts)

    @property
    def cap_squared(self) -> Fraction:
        """The mu^2 that may be spent, exactly."""
        return self._caps[0]

    @property
    def mu_squared(self) -> Fraction:
        """The mu^2 spent, exactly."""
        return self._spent[0]

    @property
    def draws(self) -> Draws:
        """The draws made."""
        return Draws(int(self._spent[2]), self._spent[1])

    def charge(self, part: str, *, sensitivity_squared: int, scale: int, draws: int) -> None:
        """Record ``draws`` discrete Gaussians of one scale on a vector of this squared sensitivity.

        Raises
        ------
        BudgetExceeded
            If mu^2, the number of draws or their sum of 1/s^2 would pass its cap.  Nothing is recorded.
        """
        hint = "Theorem D needs scales of at least 2^16"
        square = checks.integer("scale", scale, least=LEAST_SCALE, remedy=hint) ** 2
        count = checks.integer("draws", draws, least=1, remedy="Charge what is drawn")
        moved = checks.integer(
            "sensitivity_squared", sensitivity_squared, least=0, remedy="Use the integer bound"
        )
        with self._lock:
            self._record(part, (Fraction(moved, square), Fraction(count, square), Fraction(count)))

    def _record(self, part: str, cost: tuple[Fraction, Fraction, Fraction]) -> None:
        after = (self._spent[0] + cost[0], self._spent[1] + cost[1], self._spent[2] + cost[2])
        for name, value, cap in zip(("mu^2", "sum of 1/s^2", "draws"), after, self._caps, strict=True):
            if value > cap:
                raise BudgetExceeded(
                    f"part {part!r} would raise the {name} of this fit to {float(value):.9g}, above the "
                    f"{float(cap):.9g} that was set aside. Nothing was drawn. Plan fewer or smaller parts."
                )
        self._spent = after
        self._parts[part] = self._parts.get(part, Fraction(0)) + cost[0]

    def epsilon(self, delta: float) -> float:
        """Return the epsilon at ``delta`` of what the *caps* allow, so that it depends on no path."""
        if self._declared is not None and delta == self._declared[1]:
            return self._declared[0]
        mu_squared, inverse_square_sum, count = self._caps
        return real_epsilon(sqrt_up(mu_squared), delta, Draws(int(count), inverse_square_sum))


def sqrt_up(square: Fraction) -> float:
    """Return a float that is at least the square root of a fraction, and barely more."""
    bits = max(0, 128 - square.numerator.bit_length() + square.denominator.bit_length())
    bits += bits % 2
    root = Fraction(math.isqrt((square.numerator << bits) // square.denominator) + 1, 1 << bits // 2)
    return math.nextafter(float(root), math.inf)
