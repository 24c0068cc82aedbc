"""Numbers and clusters in words."""

import math
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from huemeans.release import Release

Floats = NDArray[np.float64]

_TELLING: Final = 0.5  # standard deviations from the average that are worth a word
_STRONG: Final = 1.5
_CLEAR: Final = 2.0  # standard deviations of the noise
_MOST: Final = 4  # features named for a cluster
_DIGITS: Final = 3
_THOUSAND: Final = 1000
_LARGE: Final = 1e9


def number(value: float) -> str:
    """Print a number for people: three digits, thousands apart."""
    if not math.isfinite(value):
        return "unknown"
    if value == 0:
        return "0"
    size = abs(value)
    if size >= _LARGE or size < 1 / _THOUSAND:
        return f"{value:.2e}"
    if size >= _THOUSAND:
        return f"{value:,.0f}"
    decimals = max(_DIGITS - 1 - math.floor(math.log10(size)), 0)
    return f"{value:.{decimals}f}"


def pair(value: float, error: float) -> str:
    """Print a number with its error, to the digits that the error leaves."""
    if not math.isfinite(error):
        return f"{number(value)} ± unknown"
    return f"{rounded(value, error, 1)} ± {rounded(error, error, 1)}"


def rounded(value: float, error: float, more: int = 0) -> str:
    """Print a number to the digits that its error leaves, or some more."""
    if not math.isfinite(error) or error <= 0:
        return number(value)
    decimals = max(more - math.floor(math.log10(error)), 0)
    if max(abs(value), error) >= _LARGE or decimals > 2 * _DIGITS:
        return f"{value:.{2 + more}g}"
    text = f"{value:,.{decimals}f}"
    return text.removeprefix("-") if not float(text.replace(",", "")) else text


def shares(release: "Release") -> Floats:
    """Return what part of all rows each cluster seems to have."""
    total = release.sizes.sum()
    return release.sizes / total if total > 0 else np.full(len(release.sizes), 1 / len(release.sizes))


def average(release: "Release") -> Floats:
    """Return the average of the centroids, by size."""
    return np.asarray(shares(release) @ release.centers)


def deviations(release: "Release") -> Floats:
    """Return how far each centroid lies from the average, in standard deviations of the rows, (K, d)."""
    apart = release.centers - average(release)
    between = shares(release) @ apart**2
    spread = np.sqrt(np.maximum(np.diag(release.moments), 0.0) + between)
    return np.asarray(apart / np.where(spread > 0, spread, 1.0))


def described(release: "Release") -> list[str]:
    """Return a sentence for each cluster: how many rows, and what sets it apart, the largest first."""
    return [
        f"{_rows(size, share)}: {_traits(release, at)}."
        for at, (size, share) in enumerate(zip(release.sizes, shares(release), strict=True))
    ]


def _rows(size: float, share: float) -> str:
    return f"About {number(size)} rows, {100 * share:.0f} %"


def _traits(release: "Release", cluster: int) -> str:
    away, bars, mean = deviations(release)[cluster], release.error_bars[cluster], average(release)
    apart = np.abs(release.centers[cluster] - mean)
    clear = (np.abs(away) > _TELLING) & ~(apart < _CLEAR * bars)
    found = [at for at in np.argsort(-np.abs(away), kind="stable") if clear[at]][:_MOST]
    if not found:
        return "near the average in everything"
    return ", ".join(
        f"{_degree(away[at])} {release.feature_names[at]} "
        f"({rounded(release.centers[cluster, at], bars[at])}, average {rounded(mean[at], bars[at])})"
        for at in found
    )


def _degree(away: float) -> str:
    return f"{'very ' if abs(away) > _STRONG else ''}{'high' if away > 0 else 'low'}"
