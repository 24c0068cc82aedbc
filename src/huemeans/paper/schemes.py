"""Figure 2: fractional clustering loss against epsilon for several delta, and what each scheme really keeps.

The fractional loss of noisy centroids is their loss over that of the true ones, minus one.  Noise is drawn in
floating point: these are simulations on a public table, and nothing of them is a release.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Final

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from huemeans.baselines.balcan2017 import Balcan2017
from huemeans.baselines.common import nearest
from huemeans.calibrate import epsilon_at, whitened_limit
from huemeans.ellipsoid import min_trace_ellipsoid
from huemeans.leave_one_out import differences
from huemeans.lemma import lemma_covariance
from huemeans.paper.clusters import CLUSTERS, Clustering, loss
from huemeans.private import PrivateKMeans

Floats = NDArray[np.float64]

EPSILONS: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
DELTAS: Final = (1e-6, 1e-3, 0.1, 0.999)
"""0.999 is what the paper's curve for delta = 1 stands for; above 1e-3 they are no protection."""

HONEST: Final = (1e-6, 1e-3)
"""Those for which PrivateKMeans is run."""

WHITE: Final = "white, Theorem 2"
COLORED: Final = "colored, corrected"
LEMMA: Final = "colored, lemma as printed"
EXACT: Final = "colored, corrected, exact calibration"
BALCAN: Final = "Balcan et al. 2017"
PRIVATE: Final = "PrivateKMeans (differentially private)"
SCHEMES: Final = (WHITE, COLORED, LEMMA, EXACT, BALCAN, PRIVATE)

_ROOM: Final = 0.05  # of the width, on either side: the box that is declared public for this comparison


@dataclass(frozen=True)
class Point:
    """One point of figure 2."""

    scheme: str
    epsilon: float
    delta: float
    loss: float
    """The mean fractional loss."""

    error: float
    """Its standard error."""

    moved: float
    """The mean share of customers whose label changes."""

    real_epsilon: float
    """What is kept at this delta: DP for the last two schemes, else probabilistic DP at this table."""


@dataclass(frozen=True, eq=False)
class Shapes:
    """Covariances of a clustering's noise at a whitened limit of one, by scheme, block by block."""

    roots: dict[str, list[Floats]]
    lemma_factor: float
    """By how much the lemma's covariance breaks its constraint at worst: m^2 is that times larger."""

    traces: dict[str, float]


def shapes_of(clustering: Clustering) -> Shapes:
    """Design the noise of all output perturbations for the removal of a row, the partition held fixed."""
    moves = differences(clustering.rows, clustering.labels, clustering.centers)
    covariances: dict[str, list[Floats]] = {WHITE: [], COLORED: [], LEMMA: []}
    factors = []
    farthest = float(moves.norms.max())
    for block in moves.blocks:
        _, points = moves.within(block)
        lemma = lemma_covariance(points, 1.0, span=True)
        factors.append(lemma.factor)
        covariances[WHITE].append(np.eye(points.shape[1]) * farthest**2)
        covariances[COLORED].append(min_trace_ellipsoid(points).covariance)
        covariances[LEMMA].append(lemma.covariance)
    roots = {name: [_root(one) for one in found] for name, found in covariances.items()}
    traces = {name: float(sum(np.trace(one) for one in found)) for name, found in covariances.items()}
    return Shapes(roots, max(factors), traces)


def _root(covariance: Floats) -> Floats:
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def figure_2(clustering: Clustering, repeats: int, workers: int) -> list[Point]:
    """Return all points of figure 2."""
    shapes = shapes_of(clustering)
    points = [
        _perturbed(clustering, shapes, scheme, epsilon, delta, repeats)
        for scheme in (WHITE, COLORED, LEMMA, EXACT)
        for delta in DELTAS
        for epsilon in EPSILONS
    ]
    jobs = [(clustering, BALCAN, epsilon, 0.0, repeats) for epsilon in EPSILONS]
    jobs += [(clustering, PRIVATE, epsilon, delta, repeats) for delta in HONEST for epsilon in EPSILONS]
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        found = list(pool.map(_fitted, jobs))
    for point in found:
        if point.scheme == BALCAN:  # pure: the same at every delta
            points += [Point(**{**vars(point), "delta": delta}) for delta in DELTAS]
        else:
            points.append(point)
    return points


def limits(scheme: str, epsilon: float, delta: float, lemma_factor: float) -> tuple[float, float]:
    """Return the whitened limit that a scheme is calibrated to, and the epsilon that it really keeps."""
    if scheme == EXACT:
        m = float(whitened_limit(epsilon, delta, "pdp"))
        return m, epsilon
    m = float(whitened_limit(epsilon, delta, "paper"))
    worst = m * float(np.sqrt(lemma_factor)) if scheme == LEMMA else m
    return m, float(epsilon_at(worst, delta, "pdp"))


def _perturbed(  # noqa: PLR0917  # one point
    clustering: Clustering, shapes: Shapes, scheme: str, epsilon: float, delta: float, repeats: int
) -> Point:
    m, real = limits(scheme, epsilon, delta, shapes.lemma_factor)
    roots = shapes.roots[COLORED if scheme == EXACT else scheme]
    draws = noisy_centers(clustering.centers, roots, m, repeats)
    return _point(clustering, scheme, epsilon, delta, real, draws)


def noisy_centers(
    centers: Floats, roots: list[Floats], m: float, repeats: int, seed: int = 0
) -> Iterator[Floats]:
    """Yield centers with noise of these root covariances over m."""
    rng = np.random.default_rng(seed)
    for _ in range(repeats):
        noise = [root @ rng.normal(size=root.shape[1]) / m for root in roots]
        yield centers + np.concatenate(noise).reshape(centers.shape)


def _fitted(job: tuple[Clustering, str, float, float, int]) -> Point:
    """Fit a private algorithm again and again: what one process does."""
    clustering, scheme, epsilon, delta, repeats = job
    rows = clustering.rows
    width = np.maximum(np.ptp(rows, axis=0), 1.0)
    bounds = np.stack([rows.min(axis=0) - _ROOM * width, rows.max(axis=0) + _ROOM * width])

    def centers() -> Iterator[Floats]:
        for seed in range(repeats):
            if scheme == BALCAN:
                baseline = Balcan2017(CLUSTERS, epsilon=epsilon, bounds=bounds, random_state=seed)
                yield baseline.fit(rows).cluster_centers_
            else:
                model = PrivateKMeans(
                    CLUSTERS, epsilon=epsilon, delta=delta, bounds=bounds, random_state=seed
                )
                yield np.asarray(model.fit(rows).cluster_centers_)

    with threadpool_limits(1):  # one thread in each of the processes
        return _point(clustering, scheme, epsilon, delta, epsilon, centers())


def _point(  # noqa: PLR0917  # one point
    clustering: Clustering, scheme: str, epsilon: float, delta: float, real: float, draws: Iterable[Floats]
) -> Point:
    rows, own, fixed = clustering.rows, clustering.loss, scheme not in (BALCAN, PRIVATE)
    losses, moved = [], []
    for centers in draws:
        losses.append(loss(rows, centers) / own - 1)
        moved.append(float((nearest(rows, centers) != clustering.labels).mean()) if fixed else float("nan"))
    error = float(np.std(losses, ddof=1) / np.sqrt(len(losses))) if len(losses) > 1 else float("nan")
    return Point(scheme, epsilon, delta, float(np.mean(losses)), error, float(np.mean(moved)), real)
