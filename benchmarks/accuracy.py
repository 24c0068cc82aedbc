"""How accurate PrivateKMeans is: loss over that of the non-private best of ten, beside other methods.

    python benchmarks/accuracy.py [--data NAMES] [--epsilons 0.1,1,5] [--repeats 10] [--methods NAMES]
    python benchmarks/accuracy.py --table FILE.csv --clusters K      (your own numbers, scaled to [0, 1])

Bounds are the box of the data rounded outwards and declared public *for the benchmark only*, for every method
alike, and so is delta = n^-1.1.  A method is a function (X, k, epsilon, delta, bounds, seed) -> centroids:
add one to METHODS with ten lines.
"""

import argparse
import functools
import math
from collections.abc import Callable

import numpy as np
from peer import Peer
from sklearn import datasets
from sklearn.cluster import KMeans

from huemeans import PrivateKMeans, whitened_limit
from huemeans.baselines.balcan2017 import Balcan2017
from huemeans.baselines.common import Baseline
from huemeans.baselines.dp_lloyd import DPLloyd
from huemeans.baselines.fast_lloyd import FastLloyd
from huemeans.baselines.lu2020 import Lu2020
from huemeans.baselines.xia2020 import Xia2020
from huemeans.sources import open_table

Method = Callable[[np.ndarray, int, float, float, np.ndarray, int], np.ndarray]


def huemeans(
    x: np.ndarray, k: int, epsilon: float, delta: float, bounds: np.ndarray, seed: int
) -> np.ndarray:
    """Take ours, as it comes."""
    model = PrivateKMeans(k, epsilon=epsilon, delta=delta, bounds=bounds, random_state=seed)
    return model.fit(x).cluster_centers_


def learned_bounds(
    x: np.ndarray, k: int, epsilon: float, delta: float, bounds: np.ndarray, seed: int
) -> np.ndarray:
    """Take ours without public bounds."""
    del bounds
    return PrivateKMeans(k, epsilon=epsilon, delta=delta, random_state=seed).fit(x).cluster_centers_


def white(x: np.ndarray, k: int, epsilon: float, delta: float, bounds: np.ndarray, seed: int) -> np.ndarray:
    """Take the noise white: the ablation."""
    options = {"epsilon": epsilon, "delta": delta, "bounds": bounds, "random_state": seed}
    return PrivateKMeans(k, noise="white", **options).fit(x).cluster_centers_


def baseline(method: type[Baseline]) -> Method:
    """Run another paper's method, as built for comparison."""

    def run(x: np.ndarray, k: int, epsilon: float, delta: float, bounds: np.ndarray, seed: int) -> np.ndarray:
        options = {"epsilon": epsilon, "delta": delta, "bounds": bounds, "random_state": seed}
        return method(k, **options).fit(x).cluster_centers_

    return run


def oracle(x: np.ndarray, k: int, epsilon: float, delta: float, bounds: np.ndarray, seed: int) -> np.ndarray:
    """Spend all budget on one release of the true clusters' means: a floor, not a method."""
    del bounds
    rng = np.random.default_rng(seed)
    model = KMeans(k, n_init=10, random_state=0).fit(x)
    within = x - model.cluster_centers_[model.labels_]
    values, vectors = np.linalg.eigh(within.T @ within / len(x))
    deviation = np.sqrt(np.maximum(values, 0))
    mu = whitened_limit(epsilon, delta, "dp")
    shape = (vectors * np.sqrt(deviation * deviation.sum())) / mu  # clipped at one deviation of tr V^(1/2)
    sizes = np.bincount(model.labels_, minlength=k)[:, None]
    return model.cluster_centers_ + rng.normal(size=(k, x.shape[1])) @ shape.T / sizes


@functools.cache
def peer() -> Peer:
    """Return the worker that runs diffprivlib."""
    return Peer()


def diffprivlib(
    x: np.ndarray, k: int, epsilon: float, delta: float, bounds: np.ndarray, seed: int
) -> np.ndarray:
    """Run diffprivlib 0.6.6: pure epsilon-DP, Laplace noise."""
    del delta
    return peer().fit(x, k, epsilon, bounds, seed)[0]


METHODS: dict[str, Method] = {
    "huemeans": huemeans,
    "learned bounds": learned_bounds,
    "white": white,
    "fast-lloyd": baseline(FastLloyd),
    "dp-lloyd": baseline(DPLloyd),
    "balcan2017": baseline(Balcan2017),
    "lu2020": baseline(Lu2020),
    "xia2020": baseline(Xia2020),
    "diffprivlib": diffprivlib,
    "oracle": oracle,
}


def blobs(n: int, d: int, k: int, *, spread: float = 1.0, tails: bool = False, seed: int = 0) -> np.ndarray:
    """Return blobs of unequal size, with heavy tails if asked."""
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-10, 10, size=(k, d))
    noise = rng.standard_t(4, size=(n, d)) if tails else rng.normal(size=(n, d))
    return centers[rng.choice(k, size=n, p=rng.dirichlet(np.full(k, 4.0)))] + spread * noise


def anisotropic(n: int, d: int, k: int, seed: int) -> np.ndarray:
    """Return correlated blobs whose features differ in size over two decades."""
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(d, d)) / math.sqrt(d) * np.geomspace(1, 100, d)
    return (rng.normal(size=(k, d))[rng.integers(k, size=n)] * 2 + rng.normal(size=(n, d))) @ mix


def lattice(n: int, side: int, seed: int) -> np.ndarray:
    """Return side x side round clusters on a plane, as in the S-sets."""
    rng = np.random.default_rng(seed)
    cell = rng.integers(side, size=(n, 2)) + 0.5
    return cell / side + 0.15 / side * rng.normal(size=(n, 2))


def islands(n: int, k: int, seed: int, *, spread: float) -> np.ndarray:
    """Return k elliptic clusters of equal size on a plane, none too near another, as in the S- and A-sets."""
    rng = np.random.default_rng(seed)
    apart = 0.7 / math.sqrt(k)
    centers = np.empty((0, 2))
    while len(centers) < k:
        tried = rng.uniform(size=2)
        if len(centers) == 0 or np.linalg.norm(centers - tried, axis=1).min() > apart:
            centers = np.vstack([centers, tried])
    shapes = spread * apart * rng.normal(0.7, 0.15, size=(k, 2, 2))
    labels = np.arange(n) % k
    return centers[labels] + np.einsum("nij,nj->ni", shapes[labels], rng.normal(size=(n, 2)))


def unbalanced(n: int, seed: int) -> np.ndarray:
    """Return three dense clusters of nearly all rows on one side, five of few rows on the other."""
    rng = np.random.default_rng(seed)
    dense = rng.uniform([0.05, 0.35], [0.3, 0.65], size=(3, 2))
    sparse = rng.uniform([0.7, 0.2], [1.0, 0.8], size=(5, 2))
    few = n // 65
    labels = np.concatenate([np.arange(n - 5 * few) % 3, 3 + np.arange(5 * few) % 5])
    spread = np.where(labels < 3, 0.006, 0.014)[:, None]
    return np.vstack([dense, sparse])[labels] + spread * rng.normal(size=(n, 2))


def low_rank(n: int, d: int, k: int, rank: int, seed: int) -> np.ndarray:
    """Return clusters that differ and spread in a few directions of many."""
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(rank, d))
    inner = 3 * rng.normal(size=(k, rank))[rng.integers(k, size=n)] + rng.normal(size=(n, rank))
    return inner @ mix + 0.05 * rng.normal(size=(n, d))


DATA: dict[str, tuple[Callable[[], np.ndarray], int]] = {
    "iris": (lambda: datasets.load_iris().data, 3),
    "wine": (lambda: scaled(datasets.load_wine().data), 3),
    "breast_cancer": (lambda: scaled(datasets.load_breast_cancer().data), 2),
    "digits": (lambda: datasets.load_digits().data, 10),
    "islands 5000x2 k15": (lambda: islands(5000, 15, 11, spread=0.3), 15),
    "islands 5000x2 k15 wide": (lambda: islands(5000, 15, 12, spread=0.5), 15),
    "islands 7500x2 k50": (lambda: islands(7500, 50, 13, spread=0.4), 50),
    "unbalanced 6500x2 k8": (lambda: unbalanced(6500, 14), 8),
    "lattice 5000x2 k16": (lambda: lattice(5000, 4, 1), 16),
    "blobs 1000x2 k3": (lambda: blobs(1000, 2, 3, seed=2), 3),
    "blobs 5000x8 k6 heavy": (lambda: blobs(5000, 8, 6, tails=True, seed=3), 6),
    "blobs 20000x32 k10": (lambda: blobs(20_000, 32, 10, spread=3.0, seed=4), 10),
    "blobs 100000x2 k15": (lambda: blobs(100_000, 2, 15, seed=5), 15),
    "blobs 100000x10 k10": (lambda: blobs(100_000, 10, 10, spread=2.5, seed=6), 10),
    "blobs 100000x10 k64": (lambda: blobs(100_000, 10, 64, seed=7), 64),
    "blobs 50000x64 k20": (lambda: blobs(50_000, 64, 20, spread=4.0, seed=15), 20),
    "blobs 100000x6 k50": (lambda: blobs(100_000, 6, 50, spread=2.0, seed=16), 50),
    "blobs 1000000x4 k20": (lambda: blobs(1_000_000, 4, 20, spread=2.0, seed=17), 20),
    "low rank 20000x20 k8": (lambda: low_rank(20_000, 20, 8, 3, 18), 8),
    "anisotropic 20000x20 k8": (lambda: anisotropic(20_000, 20, 8, 8), 8),
    "anisotropic 2000x12 k4": (lambda: anisotropic(2000, 12, 4, 9), 4),
}


def scaled(x: np.ndarray) -> np.ndarray:
    """Return features on [0, 1]."""
    width = np.ptp(x, axis=0)
    return (x - x.min(axis=0)) / np.where(width > 0, width, 1.0)


def outward(x: np.ndarray) -> np.ndarray:
    """Return the box of the rows, widened by half a percent on each side."""
    low, high = x.min(axis=0), x.max(axis=0)
    room = 0.005 * np.where(high > low, high - low, 1.0)
    return np.stack([low - room, high + room])


def loss(x: np.ndarray, centers: np.ndarray) -> float:
    """Return the mean squared distance to the nearest centroid."""
    total = 0.0
    for start in range(0, len(x), 10_000):
        rows = x[start : start + 10_000]
        squares = (rows**2).sum(axis=1)[:, None] - 2 * rows @ centers.T + (centers**2).sum(axis=1)
        total += float(squares.min(axis=1).sum())
    return total / len(x)


def main() -> None:
    """Print mean and standard error of the loss ratio for each cell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default=",".join(DATA))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--epsilons", default="0.1,0.5,1,2,5")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--table", help="a table of numbers without missing cells, in place of --data")
    parser.add_argument("--clusters", type=int, default=4)
    given = parser.parse_args()
    if given.table:
        DATA[given.table] = (lambda: scaled(open_table(given.table).load()[0][:]), given.clusters)
        given.data = given.table
    epsilons = [float(epsilon) for epsilon in given.epsilons.split(",")]
    print(f"{'loss / non-private loss':<24}{'method':<16}" + "".join(f"{f'eps {e:g}':>16}" for e in epsilons))
    for name in given.data.split(","):
        make, k = DATA[name]
        x = np.asarray(make(), dtype=float)
        base = KMeans(k, n_init=10, random_state=0).fit(x).inertia_ / len(x)
        for method in given.methods.split(","):
            cells = []
            for epsilon in epsilons:
                ratios = [
                    loss(x, METHODS[method](x, k, epsilon, len(x) ** -1.1, outward(x), seed)) / base
                    for seed in range(given.repeats)
                ]
                error = np.std(ratios, ddof=1) / math.sqrt(len(ratios)) if len(ratios) > 1 else float("nan")
                cells.append(f"{np.mean(ratios):.3f} ± {error:.3f}")
            print(f"{name:<24}{method:<16}" + "".join(f"{cell:>16}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
