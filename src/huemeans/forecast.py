"""What a private fit will cost in accuracy, said before a row is touched."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Final

import numpy as np

from huemeans import checks
from huemeans.budget import SHARES
from huemeans.clip_shape import colored_clip
from huemeans.guarantee import NEIGHBORS, Neighbors
from huemeans.planning import BOUNDS_SHARE, MOST_CLUSTERS, allowance, clipped_share, make_plan, split_pass

_TIMES: Final = {"add-remove": 1.0, "replace-one": 2.0}  # the deviation of the noise of sums
_GOOD: Final = 0.05
_POOR: Final = 0.5


@dataclass(frozen=True)
class Forecast:
    """What a fit will do and how large its noise will be, for round clusters of equal size.

    It counts the noise of the last pass, and neither clipping nor what an unlucky start may cost.
    """

    n_rows: int
    n_features: int
    n_clusters: int
    epsilon: float
    delta: float
    mu: float
    """The Gaussian-DP parameter that (epsilon, delta) buys."""

    parts: Mapping[str, float]
    """The mu of each part; squares add up to the square of ``mu``."""

    passes: int
    """Refining passes."""

    start: str
    """Where the first centroids come from."""

    center_error: float
    """The standard deviation of the noise in each feature of a centroid, in standard deviations of the rows
    of its cluster.
    """

    size_error: float
    """The standard deviation of the noise in the size of a cluster, in rows."""

    loss_inflation: float
    """By how much of the non-private loss the noise raises it: 0.01 is one percent."""

    def __str__(self) -> str:
        """Say it in plain sentences."""
        return (
            f"{self.n_rows} rows of {self.n_features} features in {self.n_clusters} clusters at "
            f"(epsilon={self.epsilon:g}, delta={self.delta:g}), that is mu={self.mu:.3g}: "
            f"{self.passes} {'pass' if self.passes == 1 else 'passes'} after a start from {self.start}.\n"
            f"Each centroid has an error bar of {self.center_error:.2g} standard deviations of its rows a "
            f"feature, each size one of {self.size_error:.2g} rows; noise adds "
            f"{100 * self.loss_inflation:.2g} % to the loss.{_verdict(self.loss_inflation)}"
        )


def plan(
    n: int,
    d: int,
    k: int,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    *,
    neighbors: Neighbors = "add-remove",
    learns_bounds: bool = False,
    max_rows_per_person: int = 1,
) -> Forecast:
    """Say what ``PrivateKMeans`` will do with about ``n`` rows of ``d`` features and ``k`` clusters.

    No row is touched: ``n`` is what the holder is willing to call public, or a guess.

    Examples
    --------
    >>> print(plan(20_000, 6, 4, epsilon=1.0, delta=1e-6))  # doctest: +ELLIPSIS
    20000 rows of 6 features in 4 clusters at (epsilon=1, delta=1e-06), that is mu=...
    >>> plan(1_000_000, 6, 4).loss_inflation < 0.001 < plan(1000, 6, 4).loss_inflation
    True
    """
    rows = checks.integer("n", n, least=1, remedy="Say about how many rows there are")
    width = checks.integer("d", d, least=1, remedy="Say how many features there are")
    clusters = checks.integer("k", k, least=1, most=MOST_CLUSTERS, remedy="Say how many clusters")
    eps, dlt = checks.epsilon(epsilon), checks.delta(delta)
    checks.choice("neighbors", neighbors, NEIGHBORS)
    limit = checks.integer("max_rows_per_person", max_rows_per_person, least=1, remedy="Use 1 if unsure")
    whole, _ = allowance(eps, dlt, width, clusters, learns_bounds=bool(learns_bounds))
    mu = whole / limit
    bounds = Fraction(BOUNDS_SHARE, SHARES) if learns_bounds else Fraction(0)
    made = make_plan(float(rows), width, clusters, mu * math.sqrt(1 - bounds))
    shares = {name: (1 - bounds) * Fraction(share, SHARES) for name, share in made.shares.items() if share}
    shares |= {"bounds": bounds} if bounds else {}
    size_error, center_error = _errors(
        rows / clusters, width, mu, shares[f"pass {made.passes}"], _TIMES[neighbors]
    )
    parts = {name: mu * math.sqrt(share) for name, share in shares.items()}
    start = "the box of the domain"
    if made.levels:
        start = "a private tree" + (" along learned directions" if made.learns_directions else "")
    return Forecast(
        rows,
        width,
        clusters,
        eps,
        dlt,
        mu,
        MappingProxyType(parts),
        made.passes,
        start,
        center_error,
        size_error,
        center_error**2,
    )


def _errors(rows: float, d: int, mu: float, share: Fraction, times: float) -> tuple[float, float]:
    """Return the deviations of a size, and of a centroid relative to its rows, after the last pass."""
    counts, sums = (mu * math.sqrt(part) for part in split_pass(share))
    region = colored_clip(np.eye(d), clipped_share(rows, d, mu * math.sqrt(share)), np.inf)
    return math.sqrt(times) / counts, times * region.size / math.sqrt(d) / (sums * rows)


def _verdict(inflation: float) -> str:
    if inflation < _GOOD:
        return ""
    if inflation < _POOR:
        return " Fewer clusters or features, or a larger epsilon, would help."
    return " That is too much to publish: take fewer clusters or features, more rows, or a larger epsilon."
