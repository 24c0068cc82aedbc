"""Named parts that add up exactly, and an accountant that refuses before a draw."""

import contextlib
import copy
import pickle
import sys
import threading
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from huemeans import Accountant, Budget, BudgetExceeded, InvalidArgument
from huemeans.budget import SHARES, scale_for, sqrt_up
from huemeans.discretization import Draws

ROOM = Draws(1000, Fraction(1000, 4**16))


@given(st.floats(1e-6, 60), st.lists(st.integers(1, 10**6), min_size=1, max_size=12))
def test_the_parts_compose_to_the_whole_exactly(mu, weights):
    """The exact squares of the parts sum to the exact square of mu, for every split."""
    shares = {f"part {i}": SHARES * weight // sum(weights) for i, weight in enumerate(weights)}
    shares["rest"] = SHARES - sum(shares.values())
    budget = Budget(mu, shares)
    assert sum(budget.part_squared(name) for name in budget) == budget.mu_squared
    assert budget.mu_squared == Fraction(mu) ** 2


@pytest.mark.parametrize("shares", [{"a": SHARES - 1}, {"a": SHARES, "b": 1}, {}])
def test_parts_that_do_not_add_up_are_refused(shares):
    """One millionth too few or too many is an error."""
    with pytest.raises(InvalidArgument, match=r"^shares=.* a sum of exactly 1000000"):
        Budget(1.0, shares)


@pytest.mark.parametrize("share", [0.5, -1, True])
def test_shares_are_whole_numbers(share):
    """Fractions, negatives and booleans are no shares."""
    with pytest.raises(InvalidArgument, match="share of 'a'"):
        Budget(1.0, {"a": share, "b": SHARES})


def test_a_budget_reads_like_a_mapping_and_cannot_be_changed():
    """Names map to the mu of the part; later changes to the shares passed in have no effect."""
    shares = {"x": 640_000, "y": 360_000}
    budget = Budget(0.5, shares)
    shares["x"] = 0
    assert dict(budget) == {"x": 0.4, "y": 0.3}
    assert len(budget) == 2
    with pytest.raises(TypeError):
        budget.shares["x"] = 1


@given(st.integers(1, 2**54), st.fractions(Fraction(1, 10**6), 100))
def test_the_scale_is_the_least_whole_one_that_keeps_the_part(sensitivity_squared, mu_squared):
    """Delta^2 / s^2 never exceeds the part, and one step less would, unless 2^16 is already enough."""
    scale = scale_for(sensitivity_squared, mu_squared)
    assert Fraction(sensitivity_squared, scale**2) <= mu_squared
    assert scale == 2**16 or Fraction(sensitivity_squared, (scale - 1) ** 2) > mu_squared


def test_a_part_without_a_share_has_no_scale():
    """No share, no finite noise: an error and not a division by zero."""
    with pytest.raises(InvalidArgument, match=r"^mu_squared=0\.0 "):
        scale_for(1, Fraction(0))


def charge(accountant, part="p", *, sensitivity_squared=2**40, scale=2**22, draws=1):
    """Charge a part of mu^2 = 1/16 unless told otherwise."""
    accountant.charge(part, sensitivity_squared=sensitivity_squared, scale=scale, draws=draws)


def test_charge_raises_before_anything_is_recorded():
    """The charge that does not fit leaves the accountant as it was."""
    accountant = Accountant(Fraction(1, 8), ROOM)
    charge(accountant, "first")
    charge(accountant, "second")
    with pytest.raises(BudgetExceeded, match=r"part 'third' .* mu\^2 .* Nothing was drawn"):
        charge(accountant, "third", sensitivity_squared=1, scale=2**40)
    assert dict(accountant.parts) == {"first": Fraction(1, 16), "second": Fraction(1, 16)}
    assert (accountant.mu_squared, accountant.draws.count) == (Fraction(1, 8), 2)


@pytest.mark.parametrize(
    ("cap", "message"),
    [(Draws(2, Fraction(1, 100)), "draws"), (Draws(99, Fraction(5, 2 * 4**22)), r"sum of 1/s\^2")],
)
def test_the_other_two_caps_are_refused_as_well(cap, message):
    """Number of draws and sum of 1/s^2 are caps of their own."""
    accountant = Accountant(Fraction(1), cap)
    charge(accountant, draws=2)
    with pytest.raises(BudgetExceeded, match=message):
        charge(accountant)


def test_a_million_charges_make_no_rounding_error():
    """Exact sums: a budget of ten thousand equal parts holds exactly ten thousand of them."""
    accountant = Accountant(Fraction(10_000, 16), Draws(20_000, Fraction(1, 100)))
    for _ in range(10_000):
        charge(accountant)
    with pytest.raises(BudgetExceeded):
        charge(accountant)


def test_swapping_the_parts_of_a_sensitive_and_a_cheap_query_is_refused():
    """Scales made for one part and charged with the other's sensitivity do not fit: the planted swap."""
    budget = Budget(1.0, {"sums": 900_000, "counts": 100_000})
    accountant = Accountant(budget.mu_squared, ROOM)
    charge(accountant, "counts", scale=scale_for(2**40, budget.part_squared("sums")))
    with pytest.raises(BudgetExceeded):
        charge(
            accountant, "sums", sensitivity_squared=2**41, scale=scale_for(2**41, budget.part_squared("sums"))
        )


def test_the_accountant_of_an_epsilon_keeps_that_epsilon():
    """The caps made for (1, 1e-6) give epsilon 1 back, whatever was spent."""
    accountant = Accountant.for_epsilon(1.0, 1e-6, ROOM)
    assert accountant.epsilon(1e-6) == 1.0
    assert 0.5 < accountant.epsilon(1e-4) < 1.0


@pytest.mark.parametrize(
    "bad", [{"scale": 2**16 - 1}, {"draws": 0}, {"sensitivity_squared": -1}, {"scale": 2.0**20}]
)
def test_charges_outside_theorem_d_are_refused(bad):
    """Scales below 2^16, empty charges and floats are errors that name the argument."""
    with pytest.raises(InvalidArgument, match=next(iter(bad))):
        charge(Accountant(Fraction(1), ROOM), **bad)


@given(st.fractions(Fraction(1, 10**9), 10**6) | st.just(Fraction(1, 10**400)))
def test_roots_are_rounded_up(square):
    """The float square root is never below the true one."""
    assert square <= Fraction(sqrt_up(square)) ** 2 <= square * Fraction(1 + 2**-48) + Fraction(1, 2**2000)


@pytest.mark.parametrize("integer", [np.int64, np.int32, np.uint32])
def test_numpy_integers_do_not_wrap(integer):
    """Charges and shares are Python integers inside: a scale of 3.1e9 is not squared into a refund."""
    accountant = Accountant(Fraction(1), ROOM)
    scale = integer(2**31 - 2)
    charge(accountant, sensitivity_squared=np.int64(2**61), scale=scale, draws=integer(3))
    assert accountant.mu_squared == Fraction(2**61, int(scale) ** 2)
    with pytest.raises(BudgetExceeded):
        charge(accountant, sensitivity_squared=np.int64(2**62), scale=np.int64(2**31))
    with pytest.raises(InvalidArgument, match="a sum of exactly"):
        Budget(1.0, dict.fromkeys("ab", np.int32(2**31 - 1)) | {"c": np.int32(1_000_002)})


def test_charges_from_several_threads_never_pass_the_cap():
    """Eight threads that charge at once get no more than was set aside."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(50):
            accountant, accepted = Accountant(Fraction(1, 4), ROOM), []
            barrier = threading.Barrier(8)

            def spend(accountant=accountant, accepted=accepted, barrier=barrier):
                barrier.wait()
                for _ in range(5):
                    with contextlib.suppress(BudgetExceeded):
                        charge(accountant)
                        accepted.append(1)

            threads = [threading.Thread(target=spend) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(accepted) == 4
    finally:
        sys.setswitchinterval(interval)


def test_budgets_can_be_copied_and_pickled():
    """A copy is the same budget."""
    budget = Budget(0.5, {"x": 640_000, "y": 360_000})
    assert pickle.loads(pickle.dumps(budget)) == copy.deepcopy(budget) == budget  # noqa: S301


def test_draws_are_numbers():
    """NaN would switch a cap off, and is refused."""
    with pytest.raises(InvalidArgument, match="inverse_square_sum=nan"):
        Draws(10, float("nan"))
