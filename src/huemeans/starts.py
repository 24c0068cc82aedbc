"""K-means on public points with a start that does not depend on luck: centroids that are of little use move.

After ordinary restarts, some centroids may share one cluster while another centroid serves two.  As long as
it lowers the loss, centroids are added where the loss is largest, Lloyd's algorithm is run, and as many that
are of least use are taken away again (Fritzke, "Breathing K-means", 2020).
"""

import warnings
from operator import itemgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances

Floats = NDArray[np.float64]

_RESTARTS: Final = 10
_BREATH: Final = 5  # centroids that are added and taken away at a time, at first
_LEAST_POINTS: Final = 4000
_POINTS_A_CLUSTER: Final = 200
_CANDIDATES: Final = 3  # clusters that are tried for a split
_CLEARLY: Final = 3.0  # times as much as is lost must be gained, for what is known of the rows is noisy
_STEP: Final = 1e-3  # of the spread: how far from a centroid its new neighbor starts
_ROUGHLY: Final = 1e-3  # of the variance: what centroids still move when others are tried


def best_centers(points: Floats, k: int, rng: np.random.Generator) -> Floats:
    """Return K-means centroids (k, d) of points (n, d) in random order."""
    few = points[: max(_LEAST_POINTS, _POINTS_A_CLUSTER * k)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different points than clusters
        seed = int(rng.integers(2**31))
        start = KMeans(k, n_init=_RESTARTS, tol=_ROUGHLY, random_state=seed).fit(few)
        centers = _breathing(few, start, rng).cluster_centers_
        found = KMeans(k, init=centers, n_init=1).fit(points)
    return np.asarray(found.cluster_centers_)


def with_useless_moved(points: Floats, weights: Floats, centers: Floats, rng: np.random.Generator) -> Floats:
    """Return centroids of which those of little use now split a cluster where that gains clearly more.

    ``weights`` (n,), none negative, say how many rows each point stands for.  Other centroids stay.
    """
    centers = centers.copy()
    for _ in range(len(centers) if len(centers) > 1 else 0):
        squares = pairwise_distances(points, centers, metric="sqeuclidean")
        labels = squares.argmin(axis=1)
        nearest, second = np.partition(squares, 1, axis=1)[:, :2].T
        use = np.bincount(labels, weights=weights * (second - nearest), minlength=len(centers))
        losses = np.bincount(labels, weights=weights * nearest, minlength=len(centers))
        useless = int(use.argmin())
        least = _CLEARLY * use[useless]
        found = [(least, 0, centers[:2])]
        for worst in np.argsort(-losses)[:_CANDIDATES]:
            here = labels == worst
            if worst == useless or losses[worst] <= least or here.sum() <= 1:
                continue
            if _most_gained(points[here], weights[here], centers[worst]) > least:
                found.append(_split(points[here], weights[here], float(losses[worst]), int(worst), rng))
        gain, worst, parts = max(found, key=itemgetter(0))
        if gain <= least:
            break
        centers[[worst, useless]] = parts
    return centers


def _most_gained(points: Floats, weights: Floats, center: Floats) -> float:
    """Return a bound on what splitting a cluster gains: its two means differ along one direction only."""
    total = float(weights.sum())
    mean = weights @ points / total
    within = ((points - mean) * weights[:, None]).T @ (points - mean)
    return float(np.linalg.eigvalsh(within)[-1] + total * ((mean - center) ** 2).sum())


def _split(
    points: Floats, weights: Floats, loss: float, cluster: int, rng: np.random.Generator
) -> tuple[float, int, Floats]:
    """Return what splitting a cluster gains, the cluster, and its halves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        halves = KMeans(2, n_init=2, random_state=int(rng.integers(2**31))).fit(points, sample_weight=weights)
    return loss - float(halves.inertia_), cluster, halves.cluster_centers_


def _breathing(points: Floats, model: KMeans, rng: np.random.Generator) -> KMeans:
    k = len(model.cluster_centers_)
    breath = min(_BREATH, k)
    while breath and k > 1:
        more = _lloyd(points, _with_neighbors(points, model, breath, rng))
        fewer = _lloyd(points, _without_useless(points, more.cluster_centers_, breath))
        if fewer.inertia_ < model.inertia_ * (1 - 1e-6):
            model = fewer
        else:
            breath -= 1
    return model


def _with_neighbors(points: Floats, model: KMeans, breath: int, rng: np.random.Generator) -> Floats:
    """Return the centroids, and a new one beside each of those with the largest loss."""
    centers = model.cluster_centers_
    squares = ((points - centers[model.labels_]) ** 2).sum(axis=1)
    losses = np.bincount(model.labels_, weights=squares, minlength=len(centers))
    worst = np.argsort(-losses)[:breath]
    spread = np.sqrt(squares.mean() / centers.shape[1])
    return np.vstack([centers, centers[worst] + _STEP * spread * rng.normal(size=centers[worst].shape)])


def _without_useless(points: Floats, centers: Floats, breath: int) -> Floats:
    """Return the centroids without those whose rows lose least by moving to the next one.

    Of two neighbors one is kept: together they may be of use.
    """
    distances = pairwise_distances(points, centers)
    nearest, second = np.partition(distances**2, 1, axis=1)[:, :2].T
    use = np.bincount(distances.argmin(axis=1), weights=second - nearest, minlength=len(centers))
    apart = pairwise_distances(centers)
    np.fill_diagonal(apart, np.inf)
    gone: list[int] = []
    frozen: set[int] = set()
    for candidate in np.argsort(use):
        if len(gone) < breath and candidate not in frozen:
            gone.append(int(candidate))
            if len(frozen) + breath < len(centers):
                frozen.add(int(apart[candidate].argmin()))
    return np.delete(centers, gone, axis=0)


def _lloyd(points: Floats, centers: Floats) -> KMeans:
    return KMeans(len(centers), init=centers, n_init=1, tol=_ROUGHLY).fit(points)
