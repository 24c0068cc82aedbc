"""How long one pass over the rows takes, beside a Lloyd iteration of scikit-learn's KMeans and the machine.

    python benchmarks/passes.py [--rows 1000000] [--out out/bench.json]

A pass counts and sums the rows of each cluster within its clip region (``Lloyd``), on integers; an iteration
is KMeans on float64, same threads, same run, the two sides alternating.  The limits are measured in the same
run: bytes of the grid over the speed of copying, operations over the speed of a large matrix product.
"colored" is a pass whose clip region is stretched a hundredfold askew, where the quick test of a row decides
less often.
"""

import argparse
import json
import platform
import time
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from huemeans import Domain
from huemeans.chunks import threads
from huemeans.fold import Assignment, Lloyd, fold
from huemeans.lattice import ZOOM, Whitening

ROUNDS = 7
ITERATIONS = 20
SHAPES = ((1.0, 28, 8, 1.0), (1.0, 28, 32, 1.0), (2.0, 10, 10, 1.0))
"""Millions of rows, features, clusters, and how many times as long as an iteration a pass may take."""


def best(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the seconds of the fastest of several runs."""
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def blobs(n: int, d: int, k: int) -> np.ndarray:
    """Return overlapping blobs: centers one apart, rows spread by one."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(k, d))[rng.integers(k, size=n)] + rng.normal(size=(n, d))


def state(x: np.ndarray, k: int, *, correlated: bool = False) -> tuple[np.ndarray, Lloyd]:
    """Return the grid of a table, and a pass about some of its rows that clips one row of a thousand."""
    domain = Domain(np.full(x.shape[1], -8.0), np.full(x.shape[1], 8.0))
    grid, _ = domain.to_grid(x)
    metric = domain.step
    centers = KMeans(k, n_init=1, random_state=0).fit(x[:20_000]).cluster_centers_
    near = x[:20_000] - centers[KMeans(k, init=centers, n_init=1, max_iter=1).fit(x[:20_000]).labels_]
    second = near.T @ near / len(near)
    if correlated:
        mix = np.random.default_rng(1).normal(size=second.shape)
        second = mix.T * np.geomspace(1, 1e4, len(second)) @ mix
    values, vectors = np.linalg.eigh(second)
    shape = (vectors * np.sqrt(values)) @ vectors.T
    lengths = np.sqrt(np.einsum("ij,ij->i", near @ np.linalg.inv(shape), near))
    whitening = Whitening.from_shape(shape, metric, float(np.quantile(lengths, 0.999)))
    placed = centers / domain.step
    references = np.rint(placed).astype(np.int64)
    return grid, Lloyd(references, Assignment(placed, metric), whitening, np.full(k, ZOOM))


def iteration(x: np.ndarray, k: int) -> float:
    """Return the seconds of one Lloyd iteration: of many, less those of one."""

    def run(rounds: int) -> tuple[float, int]:
        model = KMeans(k, init=x[:k], n_init=1, max_iter=rounds, tol=0)
        return best(lambda: model.fit(x), 1), model.n_iter_

    (many, some), (one, first) = run(1 + ITERATIONS), run(1)
    return (many - one) / (some - first)


def limits() -> tuple[float, float]:
    """Return bytes a second of reading and writing, and floating-point operations a second."""
    source, target = np.ones(2**25), np.empty(2**25)
    square = np.ones((2048, 2048))
    return 2 * source.nbytes / best(lambda: np.copyto(target, source)), 2 * 2048**3 / best(
        lambda: square @ square
    )


def measured(millions: float, d: int, k: int, target: float) -> dict[str, float]:
    """Return the figures of one shape, the two sides alternating."""
    n = int(millions * 1_000_000)
    x = blobs(n, d, k)
    grid, lloyd = state(x, k)
    fold(grid, lloyd)
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(best(lambda: fold(grid, lloyd), 3))
        theirs.append(iteration(x, k))
    _, colored = state(x, k, correlated=True)
    copying, multiplying = limits()
    operations = n * (2 * d * k + 3 * d)
    return {
        "rows": n,
        "features": d,
        "clusters": k,
        "pass_seconds": min(ours),
        "strongly_colored_pass_seconds": best(lambda: fold(grid, colored)),
        "iteration_seconds": min(theirs),
        "ratio": min(ours) / min(theirs),
        "target": target,
        "of_copying": grid.nbytes / copying / min(ours),
        "of_multiplying": operations / multiplying / min(ours),
    }


def growth(rows: int) -> dict[str, dict[str, float]]:
    """Return the seconds of a pass by rows, and by clusters."""
    x = blobs(10 * rows, 10, 8)
    grid, lloyd = state(x, 8)
    by_rows = {str(n): best(lambda n=n: fold(grid[:n], lloyd), 3) for n in (rows // 10, rows, 10 * rows)}
    by_clusters = {}
    for k in (2, 4, 8, 16, 32, 64):
        _, other = state(x[:200_000], k)
        by_clusters[str(k)] = best(lambda other=other: fold(grid[:rows], other), 3)
    return {"by_rows": by_rows, "by_clusters": by_clusters}


def main() -> None:
    """Print a table, and write it as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=Path("out/bench.json"))
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    heads = ("pass", "iteration", "ratio", "target", "copying", "product", "colored")
    print(f"{'':<28}" + "".join(f"{head:>11}" for head in heads))
    passes = []
    for millions, d, k, target in SHAPES:
        one = measured(millions * given.rows / 1e6, d, k, target)
        passes.append(one)
        name = f"{one['rows']:,} x {d}, K = {k}"
        cells = (
            f"{one['pass_seconds'] * 1e3:.1f} ms",
            f"{one['iteration_seconds'] * 1e3:.1f} ms",
            f"{one['ratio']:.2f}",
            f"{target:.1f}",
            f"{one['of_copying']:.0%}",
            f"{one['of_multiplying']:.0%}",
            f"{one['strongly_colored_pass_seconds'] * 1e3:.1f} ms",
        )
        print(f"{name:<28}" + "".join(f"{cell:>11}" for cell in cells), flush=True)
    grown = growth(given.rows)
    for name, figures in grown.items():
        print(
            f"{name}: " + ", ".join(f"{int(key):,}: {value * 1e3:.1f} ms" for key, value in figures.items())
        )
    machine = {
        "processor": platform.processor() or platform.machine(),
        "threads": threads(),
        "numpy": np.__version__,
    }
    given.out.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine,
        "passes": passes,
        "growth": grown,
    }
    given.out.write_text(json.dumps(content, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
