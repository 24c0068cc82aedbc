"""The three calibrations of Gaussian noise: (epsilon, delta) to whitened sensitivity and back.

A Gaussian release with covariance S of two values that differ by d has one number that says all about
its privacy: the whitened sensitivity m = ||S^(-1/2) d||.  Its privacy loss is normal with mean m^2/2 and
variance m^2, and it is exactly m-Gaussian-DP.  Three notions turn m into (epsilon, delta):

``"dp"``
    differential privacy, exact (Balle and Wang 2018):
    delta = Phi(m/2 - epsilon/m) - e^epsilon Phi(-m/2 - epsilon/m).
``"pdp"``
    probabilistic differential privacy, exact: delta = P(loss > epsilon) = Phi(m/2 - epsilon/m).
``"paper"``
    the constant printed by Ravi, Scaglione and Peisert: m = epsilon / sqrt(2 log(2/delta)).
    It is *not* valid for large epsilon and wasteful for small; it is here for comparison only.

Everything works on numbers and, elementwise, on arrays.
"""

from typing import Final, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import elementwise
from scipy.special import erfcx, ndtr, ndtri

from huemeans import checks

Notion = Literal["dp", "pdp", "paper"]
NOTIONS: Final = ("dp", "pdp", "paper")

Floats = NDArray[np.float64]

_QUADRATURE_BELOW: Final = 1.0
_FARTHEST: Final = 1e150  # densities vanish long before, and squares stay finite
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_TOLERANCES: Final = {"xatol": 0.0, "xrtol": 4e-16, "fatol": 0.0, "frtol": 0.0}


@overload
def whitened_limit(epsilon: float, delta: float, notion: Notion) -> float: ...
@overload
def whitened_limit(epsilon: ArrayLike, delta: ArrayLike, notion: Notion) -> float | Floats: ...
def whitened_limit(epsilon: ArrayLike, delta: ArrayLike, notion: Notion) -> float | Floats:
    """Return the largest whitened sensitivity m that is (epsilon, delta)-private in the given notion.

    Examples
    --------
    >>> round(whitened_limit(1.0, 1e-5, "dp"), 4)
    0.2681
    """
    checks.choice("notion", notion, NOTIONS)
    eps, dlt = np.broadcast_arrays(_epsilon(epsilon), _delta(delta))
    if notion == "paper":
        return _plain(eps / _paper_slope(dlt))
    if notion == "pdp":
        return _plain(_pdp_limit(eps, dlt))
    return _plain(_dp_limit(eps, dlt))


@overload
def epsilon_at(m: float, delta: float, notion: Notion) -> float: ...
@overload
def epsilon_at(m: ArrayLike, delta: ArrayLike, notion: Notion) -> float | Floats: ...
def epsilon_at(m: ArrayLike, delta: ArrayLike, notion: Notion) -> float | Floats:
    """Return the smallest epsilon >= 0 that a release of whitened sensitivity m keeps at ``delta``.

    Examples
    --------
    The paper's constant at epsilon 20 and delta 1e-6 really gives 24.54 (pdp) and 23.90 (dp):

    >>> m = whitened_limit(20.0, 1e-6, "paper")
    >>> round(epsilon_at(m, 1e-6, "pdp"), 2), round(epsilon_at(m, 1e-6, "dp"), 2)
    (24.54, 23.9)
    """
    checks.choice("notion", notion, NOTIONS)
    length, dlt = np.broadcast_arrays(_length(m), _delta(delta))
    if notion == "paper":
        return _plain(length * _paper_slope(dlt))
    if notion == "pdp":
        return _plain(_pdp_epsilon(length, dlt))
    return _plain(_dp_epsilon(length, dlt))


@overload
def delta_at(m: float, epsilon: float, notion: Notion) -> float: ...
@overload
def delta_at(m: ArrayLike, epsilon: ArrayLike, notion: Notion) -> float | Floats: ...
def delta_at(m: ArrayLike, epsilon: ArrayLike, notion: Notion) -> float | Floats:
    """Return the delta that a release of whitened sensitivity m spends at ``epsilon`` (which may be 0).

    Examples
    --------
    >>> round(delta_at(1.0, 0.0, "dp"), 6)  # total variation between N(0, 1) and N(1, 1)
    0.382925
    """
    checks.choice("notion", notion, NOTIONS)
    length, eps = np.broadcast_arrays(_length(m), _epsilon(epsilon, allow_zero=True))
    moving = length > 0
    safe = np.where(moving, length, 1.0)
    if notion == "paper":
        spent = np.minimum(1.0, 2 * np.exp(-((eps / safe) ** 2) / 2))
    elif notion == "pdp":
        spent = ndtr(safe / 2 - eps / safe)
    else:
        spent = _dp_delta(safe, eps)
    return _plain(np.where(moving, spent, 0.0))


def _paper_slope(delta: Floats) -> Floats:
    return np.asarray(np.sqrt(2 * np.log(2 / delta)))


def _pdp_limit(epsilon: Floats, delta: Floats) -> Floats:
    """Solve m^2/2 + z m = epsilon for its positive root, without cancellation for either sign of z."""
    z = -ndtri(delta)
    root = np.sqrt(z * z + 2 * epsilon)
    return np.asarray(np.where(z > 0, 2 * epsilon / (np.abs(z) + root), root + np.abs(z)))


def _pdp_epsilon(m: Floats, delta: Floats) -> Floats:
    return np.asarray(np.maximum(0.0, m * (m / 2 - ndtri(delta))))


def _dp_delta(m: Floats, epsilon: Floats) -> Floats:
    """Evaluate the exact profile with relative accuracy far below 1e-9 down to the underflow threshold.

    With x1 = epsilon/m - m/2, x2 = x1 + m and Mills' ratio M, delta = phi(x1) (M(x1) - M(x2)).
    For small m the difference would cancel, so it is integrated: -M'(t) = 1 - t M(t) > 0.
    For x1 < 0 the first term is about one, and the plain form has nothing to cancel.
    """
    with np.errstate(over="ignore"):
        center = np.minimum(epsilon / m, _FARTHEST)
    x1 = np.maximum(center - m / 2, -_FARTHEST)
    x2 = np.minimum(center + m / 2, _FARTHEST)
    density = np.exp(-(x1**2) / 2) / np.sqrt(2 * np.pi)
    quadrature = density * m * _mean_mills_slope(x1, m)
    plain = ndtr(-x1) - density * _mills(x2)
    difference = density * (_mills(np.maximum(x1, 0)) - _mills(x2))
    return np.asarray(np.where(m < _QUADRATURE_BELOW, quadrature, np.where(x1 < 0, plain, difference)))


def _mills(t: Floats) -> Floats:
    return np.asarray(np.sqrt(np.pi / 2) * erfcx(t / np.sqrt(2)))


def _mean_mills_slope(start: Floats, width: Floats) -> Floats:
    """Average 1 - t M(t) over [start, start + width] for width < 1; nodes are kept where erfcx is finite."""
    narrow = np.minimum(width, _QUADRATURE_BELOW)
    total = np.zeros_like(start)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        t = np.maximum(start + narrow * (node + 1) / 2, -1.0)
        total += weight / 2 * (1 - t * _mills(t))
    return total


def _dp_limit(epsilon: Floats, delta: Floats) -> Floats:
    """Find the m whose exact profile passes through (epsilon, delta).

    Below: pdp implies dp.  Above: P(loss > epsilon + t) (1 - e^-t) <= delta(epsilon) for every t > 0.
    """
    t = np.log(2 / (1 - delta))
    low = _pdp_limit(epsilon, delta)
    high = _pdp_limit(epsilon + t, 2 * delta / (1 + delta))
    return _root(lambda m, e, d: np.log(_dp_delta(m, e) / d), (low, high), (epsilon, delta), safe=low)


def _dp_epsilon(m: Floats, delta: Floats) -> Floats:
    """Find the epsilon at which the exact profile of m passes through delta; 0 where it starts below."""
    high = _pdp_epsilon(m, delta)
    solve = (high > 0) & (_dp_delta(np.where(m > 0, m, 1.0), np.zeros_like(m)) > delta)
    result = np.zeros_like(m)
    if solve.any():
        bracket = (np.zeros_like(high[solve]), high[solve])
        result[solve] = _root(
            lambda e, length, d: np.log(_dp_delta(length, e) / d),
            bracket,
            (m[solve], delta[solve]),
            safe=high[solve],
        )
    return result


def _root(
    function: object, bracket: tuple[Floats, Floats], args: tuple[Floats, Floats], safe: Floats
) -> Floats:
    """Find a root, or return the safe end of the bracket where floats are too coarse or too short for one."""
    with np.errstate(all="ignore"):
        found = elementwise.find_root(function, bracket, args=args, tolerances=_TOLERANCES, maxiter=500)
    return np.asarray(np.where(found.success & np.isfinite(found.x), found.x, safe))


def _plain(result: Floats) -> float | Floats:
    return float(result) if np.ndim(result) == 0 else np.asarray(result)


def _epsilon(value: ArrayLike, *, allow_zero: bool = False) -> Floats:
    expected = "a finite number, 0 or above" if allow_zero else "a finite number above 0"
    above = -np.finfo(np.float64).smallest_subnormal if allow_zero else 0.0
    hint = checks.EPSILON_HINT.capitalize()
    return checks.public_array("epsilon", value, above=float(above), expected=expected, remedy=hint)


def _delta(value: ArrayLike) -> Floats:
    expected, hint = "a number strictly between 0 and 1", checks.DELTA_HINT.capitalize()
    array = checks.public_array("delta", value, above=0.0, expected=expected, remedy=hint)
    if (array >= 1).any():
        checks.refuse("delta", repr(value) if np.isscalar(value) else "<array>", expected, hint)
    return array


def _length(value: ArrayLike) -> Floats:
    expected = "a finite whitened length, 0 or above"
    above = -float(np.finfo(np.float64).smallest_subnormal)
    return checks.public_array("m", value, above=above, expected=expected, remedy="Pass ||S^(-1/2) d||")
