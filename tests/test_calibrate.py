"""The three calibrations: against mpmath, against dp-accounting, against each other."""

import dp_accounting
import mpmath
import numpy as np
import pytest

from huemeans import InvalidArgument, delta_at, epsilon_at, whitened_limit

EPSILONS = [1e-4, 3e-4, 1e-3, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0]
DELTAS = [1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 0.05, 0.3, 0.5]
GRID = [(epsilon, delta) for epsilon in EPSILONS for delta in DELTAS]


def upper_tail(x):
    """Return P(Z > x) at the working precision of mpmath."""
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2


def exact_delta(m, epsilon, notion):
    """Return the privacy profile of a Gaussian at 50 digits, straight from its definition."""
    m, epsilon = mpmath.mpf(m), mpmath.mpf(epsilon)
    if notion == "pdp":
        return upper_tail(epsilon / m - m / 2)
    if notion == "paper":
        return 2 * mpmath.exp(-((epsilon / m) ** 2) / 2)
    return upper_tail(epsilon / m - m / 2) - mpmath.exp(epsilon) * upper_tail(epsilon / m + m / 2)


def polished(function, start):
    """Return the root of ``function`` near ``start`` at 50 digits."""
    start = mpmath.mpf(start)
    return mpmath.findroot(function, (start, start * (1 + mpmath.mpf(10) ** -8)), tol=1e-45)


@pytest.mark.parametrize("notion", ["dp", "pdp", "paper"])
@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_all_three_functions_match_fifty_digits(epsilon, delta, notion):
    """Limit, epsilon and delta are right to 1e-9 relative, also where e^epsilon or the tail is extreme."""
    with mpmath.workdps(50):
        m = whitened_limit(epsilon, delta, notion)
        exact_m = polished(lambda x: mpmath.log(exact_delta(x, epsilon, notion) / delta), m)
        assert abs(m / exact_m - 1) < 1e-9
        assert abs(delta_at(m, epsilon, notion) / exact_delta(m, epsilon, notion) - 1) < 1e-9
        back = epsilon_at(m, delta, notion)
        exact_back = polished(lambda x: mpmath.log(exact_delta(m, x, notion) / delta), back)
        assert abs(back / exact_back - 1) < 1e-9


@pytest.mark.parametrize(
    ("m", "epsilon"), [(0.03, 0.9), (0.2, 6.0), (0.99, 25.0), (1.01, 25.0), (3.0, 100.0)]
)
def test_delta_is_right_far_in_the_tail(m, epsilon):
    """Deltas down to 1e-250 keep nine digits on both sides of the switch between the two formulas."""
    with mpmath.workdps(320):
        exact = exact_delta(m, epsilon, "dp")
        assert abs(delta_at(m, epsilon, "dp") / exact - 1) < 1e-9


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3, 0.1])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 20.0])
def test_dp_calibration_agrees_with_dp_accounting(epsilon, delta):
    """An independent library finds the same noise and the same epsilon, to 1e-9."""
    m = whitened_limit(epsilon, delta, "dp")
    sigma = dp_accounting.get_sigma_gaussian(epsilon, delta, tol=1e-14)
    assert m == pytest.approx(1 / sigma, rel=1e-9)
    assert epsilon_at(m, delta, "dp") == pytest.approx(
        dp_accounting.get_epsilon_gaussian(1 / m, delta), rel=1e-9
    )


def test_the_papers_constant_fails_at_large_epsilon():
    """Epsilon 20 declared at delta 1e-6 is 24.54 in PDP and 23.90 in DP."""
    m = whitened_limit(20.0, 1e-6, "paper")
    assert epsilon_at(m, 1e-6, "pdp") == pytest.approx(24.541, abs=5e-4)
    assert epsilon_at(m, 1e-6, "dp") == pytest.approx(23.899, abs=5e-4)
    assert delta_at(m, 20.0, "dp") > 100 * 1e-6


def test_the_papers_constant_wastes_noise_at_small_epsilon():
    """Control of the test above: at epsilon 0.5 the same constant is sound and 1.975 times too noisy."""
    exact, paper = whitened_limit(0.5, 1e-5, "dp"), whitened_limit(0.5, 1e-5, "paper")
    assert (exact / paper) ** 2 == pytest.approx(1.975, abs=5e-3)


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_pdp_implies_dp(epsilon, delta):
    """At the same m, the DP delta is below the PDP delta; at the same budget PDP allows less."""
    m = whitened_limit(epsilon, delta, "pdp")
    assert delta_at(m, epsilon, "dp") < delta_at(m, epsilon, "pdp")
    assert m < whitened_limit(epsilon, delta, "dp")


def test_epsilon_is_zero_where_delta_already_covers_the_total_variation():
    """A delta above delta(0) needs no epsilon; a release that moves nothing costs nothing."""
    assert epsilon_at(0.1, 0.5, "dp") == 0
    assert epsilon_at(0.1, 0.6, "pdp") == 0
    assert epsilon_at(0.0, 1e-6, "dp") == delta_at(0.0, 1.0, "pdp") == delta_at(0.0, 0.0, "dp") == 0


def test_arrays_are_calibrated_element_by_element():
    """An array gives what its elements give one by one."""
    m = np.array([[0.0, 0.1], [0.5, 3.0]])
    expected = [[epsilon_at(x, 1e-6, "dp") for x in row] for row in m.tolist()]
    np.testing.assert_array_equal(expected, epsilon_at(m, 1e-6, "dp"))


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "1", None, True, 1j])
def test_bad_epsilon_is_refused_by_name(value):
    """The message names epsilon, its value, what was expected and what to do."""
    with pytest.raises(InvalidArgument, match=r"^epsilon=.* is not valid: expected .*\. .*\.$"):
        whitened_limit(value, 1e-6, "dp")


@pytest.mark.parametrize("value", [0, -1e-9, 1, 1.5, float("nan"), "small"])
def test_bad_delta_is_refused_by_name(value):
    """The message names delta and shows the value."""
    with pytest.raises(InvalidArgument, match=r"^delta=") as caught:
        epsilon_at(1.0, value, "pdp")
    assert repr(value) in str(caught.value)


def test_bad_notion_and_length_are_refused():
    """An unknown notion lists the known ones; a negative m is refused; arrays are not quoted."""
    with pytest.raises(InvalidArgument, match=r"notion='zcdp' .* one of 'dp', 'pdp', 'paper'"):
        delta_at(1.0, 1.0, "zcdp")
    with pytest.raises(InvalidArgument, match=r"^m=-1\.0 "):
        delta_at(-1.0, 1.0, "dp")
    with pytest.raises(InvalidArgument, match=r"^m=<ndarray> "):
        epsilon_at(np.array([123.25, np.nan]), 1e-6, "dp")


def test_where_floats_end_the_safe_side_is_returned():
    """Figures beyond what floats resolve give the stricter bound and no NaN."""
    assert whitened_limit(1e-200, 1e-160, "dp") == whitened_limit(1e-200, 1e-160, "pdp")
    assert whitened_limit(1e300, 1e-6, "dp") > 0
    assert delta_at(1e-320, 1.0, "dp") == 0
    assert delta_at(1e200, 1.0, "dp") == 1
