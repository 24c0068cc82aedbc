"""The method of Balcan, Dick, Liang, Mou and Zhang: candidates from noisy cubes, private local search.

"Differentially Private Clustering in High-Dimensional Euclidean Spaces", ICML 2017: pure epsilon-DP in four
steps: project to about log n dimensions; split a shifted cube again and again where noisy counts are large,
which leaves the middles of cells as candidates; choose K of them by local search, each swap by the
exponential mechanism; recover centroids as noisy means of the rows that the chosen candidates serve. The
epsilon is split 2/3 : 1/6 : 1/6.

Choices made here. One projection, so that nothing is spent on choosing the best of several (the paper's
share for that goes to the search), to min(d, ln n) dimensions, rows then moved into the ball that holds
nearly all projections of the box. Two shifted cubes, split eight times. A cell is split while its count
with Laplace noise exceeds what noise alone reaches in one of all the cells of its parent; cells without
rows take part by their number, not one by one. Local search makes 4 K swaps. Means are of offsets from the
middle of the box.

The public MATLAB code spends more than it says: three passes of Lloyd at epsilon / 6 each are added, which
makes 17/12 epsilon in all; it divides by exact counts and scales the noise to the range of one feature
instead of to all. ``budget="published"`` adds those passes, with sound noise and what they cost stated; the
rest cannot be priced.
"""

from fractions import Fraction
from operator import itemgetter
from typing import Any, Final

import numpy as np
from sklearn.metrics import pairwise_distances

from huemeans import checks
from huemeans.baselines.common import (
    N_PUBLIC,
    Baseline,
    Claim,
    Floats,
    Table,
    choice_probabilities,
    nearest,
    sums_by,
)

SHARES: Final = {"candidates": Fraction(2, 3), "search": Fraction(1, 6), "recovery": Fraction(1, 6)}
EXTRA: Final = 3
"""Passes of Lloyd that the public code adds."""

_CUBES: Final = 2
_DEPTH: Final = 8
_SWAPS: Final = 4  # times K
_MOST: Final = 600  # candidates: those with the largest noisy counts
_CHUNK: Final = 4096
_SURE: Final = 1e-2  # chance that noise alone splits a cell without rows, over a whole split


class Balcan2017(Baseline):
    """Projection, private candidates, private local search, private recovery.

    ``budget`` is "honest" or "published": with three passes of Lloyd beyond the declared epsilon.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: Any = (-1, 1),
        budget: str = "honest",
        random_state: Any = None,
    ) -> None:
        super().__init__(n_clusters, epsilon=epsilon, delta=delta, bounds=bounds, random_state=random_state)
        self.budget = budget

    def _centers(self, table: Table, k: int) -> Floats:
        checks.choice("budget", self.budget, ("honest", "published"))
        epsilons = {part: float(share * Fraction(self.epsilon)) for part, share in SHARES.items()}
        points, radius = projected(table)
        found = candidates(points, radius, epsilons["candidates"], table.rng)
        chosen = local_search(points, found, k, radius, epsilons["search"], table.rng)
        centers = noisy_means(table, nearest(points, chosen), k, epsilons["recovery"])
        for _ in range(EXTRA if self.budget == "published" else 0):
            centers = noisy_means(table, nearest(table.rows, centers), k, epsilons["recovery"])
        return centers

    def _claim(self) -> Claim:
        extra = EXTRA * SHARES["recovery"] if self.budget == "published" else 0
        spent = float((1 + extra) * Fraction(self.epsilon))
        words = f"pure epsilon-DP when a row is added or removed, {N_PUBLIC}"
        return Claim(spent, 0.0, "add-remove", words)


def projected(table: Table) -> tuple[Floats, float]:
    """Return rows in few random dimensions, (n, p), and the radius of the ball that they are moved into."""
    d = len(table.half)
    p = min(d, max(1, int(np.ceil(np.log(max(len(table.rows), 2))))))
    radius = float(np.linalg.norm(table.half))
    if p == d:
        return table.rows, radius
    points = table.rows @ table.rng.normal(size=(d, p)) / np.sqrt(p)
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return points * np.minimum(1.0, radius / np.maximum(lengths, 1e-300)), radius


def candidates(points: Floats, radius: float, epsilon: float, rng: np.random.Generator) -> Floats:
    """Return the middles of cells of shifted cubes whose noisy counts stand out, (m, p), in the ball."""
    p = points.shape[1]
    scale = _CUBES * _DEPTH / epsilon  # a row is in one cell a level of each cube
    found: list[tuple[float, Floats]] = []
    for _ in range(_CUBES):
        corner = np.asarray(-radius * (1 + rng.random(p)))
        found += _split(points, corner, 3 * radius, scale, rng)
    found.sort(key=itemgetter(0), reverse=True)
    spare = rng.uniform(-radius, radius, size=(1, p)) / np.sqrt(p)
    middles = np.vstack([np.zeros((1, p)), spare, *(middle for _, middle in found[:_MOST])])
    lengths = np.linalg.norm(middles, axis=1, keepdims=True)
    return np.asarray(middles * np.minimum(1.0, radius / np.maximum(lengths, 1e-300)))


def _split(
    points: Floats, corner: Floats, side: float, scale: float, rng: np.random.Generator
) -> list[tuple[float, Floats]]:
    """Return noisy counts and middles of the cells that seem to hold rows, level by level."""
    p = points.shape[1]
    places = (points - corner) / side
    clear = scale * (p * np.log(2) + np.log(_DEPTH / _SURE))
    alarm = np.exp(-clear / scale) / 2
    kept, parents, found = np.ones(len(points), dtype=bool), np.zeros((1, p)), []
    for level in range(1, _DEPTH + 1):
        codes = np.floor(places[kept] * 2.0**level)
        cells, where, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
        noisy = counts + rng.laplace(size=len(cells)) * scale
        large = noisy > clear
        others = max(2.0**p * len(parents) - len(cells), 0.0)
        alarms = int(rng.poisson(others * alarm))  # of very many cells without rows, hardly any
        empty = 2 * parents[rng.integers(len(parents), size=alarms)] + rng.integers(2, size=(alarms, p))
        parents = np.vstack([cells[large], empty])
        if not len(parents):
            break
        sizes = np.append(noisy[large], clear + rng.exponential(scale, size=alarms))
        middles = corner + (parents + 0.5) * (side / 2.0**level)
        found += list(zip(sizes.tolist(), middles, strict=True))
        inside = np.zeros(len(points), dtype=bool)
        inside[np.flatnonzero(kept)] = large[where.ravel()]
        kept = inside
    return found


def local_search(  # noqa: PLR0917  # what the search is told
    points: Floats, found: Floats, k: int, radius: float, epsilon: float, rng: np.random.Generator
) -> Floats:
    """Return k of the candidates, (k, p), by swaps that the exponential mechanism chooses."""
    sensitivity = (2 * radius) ** 2  # all lie in one ball
    each = epsilon / (_SWAPS * k + 1)
    chosen = rng.integers(len(found), size=k)
    seen, losses = [], []
    for _ in range(_SWAPS * k):
        swaps = swap_losses(points, found, chosen)
        seen.append(chosen)
        losses.append(float(swaps[0, chosen[0]]))  # swapped for itself
        chances = choice_probabilities(swaps.ravel(), each, sensitivity)
        out, into = divmod(int(rng.choice(len(chances), p=chances)), len(found))
        chosen = np.append(np.delete(chosen, out), into)
    seen.append(chosen)
    losses.append(float(swap_losses(points, found, chosen)[0, chosen[0]]))
    chances = choice_probabilities(np.array(losses), each, sensitivity)
    return np.asarray(found[seen[int(rng.choice(len(chances), p=chances))]])


def swap_losses(points: Floats, found: Floats, chosen: Any) -> Floats:
    """Return the loss (k, m) of the chosen candidates when one of them is swapped for each other one."""
    total = np.zeros((len(chosen), len(found)))
    for start in range(0, len(points), _CHUNK):
        squares = pairwise_distances(points[start : start + _CHUNK], found, metric="sqeuclidean")
        served = squares[:, chosen]
        for out in range(len(chosen)):
            others = np.delete(served, out, axis=1).min(axis=1, initial=np.inf)
            total[out] += np.minimum(squares, others[:, None]).sum(axis=0)
    return total


def noisy_means(table: Table, labels: Any, k: int, epsilon: float) -> Floats:
    """Return noisy means of clusters: half of epsilon on counts, half on sums of L1 sensitivity sum(half)."""
    counts, sums = sums_by(labels, table.rows, k)
    counts += table.rng.laplace(size=k) * (2 / epsilon)
    sums += table.rng.laplace(size=sums.shape) * (2 * table.half.sum() / epsilon)
    return np.clip(sums / np.maximum(counts, 1.0)[:, None], -table.half, table.half)
