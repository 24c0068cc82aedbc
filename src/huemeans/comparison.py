"""Loss against epsilon for several methods on one table: for the holder, not private."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from huemeans.baselines.balcan2017 import Balcan2017
from huemeans.baselines.common import Baseline
from huemeans.baselines.dp_lloyd import DPLloyd
from huemeans.baselines.fast_lloyd import FastLloyd
from huemeans.baselines.lu2020 import Lu2020
from huemeans.baselines.white import WhiteGaussian
from huemeans.baselines.xia2020 import Xia2020
from huemeans.errors import InvalidArgument
from huemeans.private import PrivateKMeans
from huemeans.tailored import TailoredKMeans

Floats = NDArray[np.float64]
Noise = Literal["colored", "white"]


@dataclass(frozen=True, eq=False)
class Case:
    """A table, and what every method is told of it."""

    rows: Floats
    n_clusters: int
    bounds: Floats
    """(2, d), public."""

    delta: float


Method = Callable[[Case, float, int], Floats]


def losses(case: Case, epsilons: list[float], repeats: int) -> dict[str, dict[float, float]]:
    """Return, for each method and epsilon, the mean loss over that of the best of ten non-private runs.

    A method that cannot do a table, as TailoredKMeans with a cluster of one row, has NaN.
    """
    base = _loss(
        case.rows, KMeans(case.n_clusters, n_init=10, random_state=0).fit(case.rows).cluster_centers_
    )
    return {
        name: {epsilon: _mean_ratio(method, case, epsilon, repeats, base) for epsilon in epsilons}
        for name, method in METHODS.items()
    }


def _mean_ratio(method: Method, case: Case, epsilon: float, repeats: int, base: float) -> float:
    try:
        found = [_loss(case.rows, method(case, epsilon, seed)) for seed in range(repeats)]
    except InvalidArgument:
        return float("nan")
    return float(np.mean(found)) / max(base, np.finfo(np.float64).tiny)


def _loss(rows: Floats, centers: Floats) -> float:
    squares = np.full(len(rows), np.inf)
    for center in np.asarray(centers):
        squares = np.minimum(squares, ((rows - center) ** 2).sum(axis=1))
    return float(squares.mean())


def _private(noise: Noise, case: Case, epsilon: float, seed: int) -> Floats:
    options: dict[str, Any] = {"delta": case.delta, "bounds": case.bounds, "noise": noise}
    model = PrivateKMeans(case.n_clusters, epsilon=epsilon, random_state=seed, **options)
    return np.asarray(model.fit(case.rows).cluster_centers_)


def _tailored(noise: Noise, case: Case, epsilon: float, seed: int) -> Floats:
    options: dict[str, Any] = {"delta": case.delta, "noise": noise}
    model = TailoredKMeans(case.n_clusters, epsilon=epsilon, random_state=seed, **options)
    return np.asarray(model.fit(case.rows).cluster_centers_)


def _baseline(method: type[Baseline], case: Case, epsilon: float, seed: int) -> Floats:
    options: dict[str, Any] = {"delta": case.delta, "bounds": case.bounds, "random_state": seed}
    return np.asarray(method(case.n_clusters, epsilon=epsilon, **options).fit(case.rows).cluster_centers_)


METHODS: Final[dict[str, Method]] = {
    "PrivateKMeans": partial(_private, "colored"),
    "PrivateKMeans, white": partial(_private, "white"),
    "radius-bounded Lloyd (2024)": partial(_baseline, FastLloyd),
    "DP-Lloyd (2016)": partial(_baseline, DPLloyd),
    "Balcan et al. (2017)": partial(_baseline, Balcan2017),
    "Lu and Shen (2020)": partial(_baseline, Lu2020),
    "Xia et al. (2020), local": partial(_baseline, Xia2020),
    "white, Theorem 2 (not DP)": partial(_baseline, WhiteGaussian),
    "tailored, colored (not DP)": partial(_tailored, "colored"),
    "tailored, white (not DP)": partial(_tailored, "white"),
}
