"""How long PrivateKMeans fits a million rows, beside scikit-learn's KMeans(n_init=1) and diffprivlib's.

python benchmarks/fit.py [--rows 1000000]
"""

import argparse
import time

import numpy as np
from peer import Peer
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans

from huemeans import PrivateKMeans

ROUNDS = 3


def blobs(n: int, d: int, k: int) -> np.ndarray:
    """Return overlapping blobs: centers one apart, rows spread by one."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(k, d))[rng.integers(k, size=n)] + rng.normal(size=(n, d))


def seconds(model: BaseEstimator, x: np.ndarray) -> float:
    """Return how long a fit takes."""
    start = time.perf_counter()
    model.fit(x)
    return time.perf_counter() - start


def beside_sklearn(n: int, d: int, k: int) -> float:
    """Print best times and their ratio, the sides alternating; return our time."""
    x = blobs(n, d, k)
    ours, learned, sklearns = [], [], []
    for turn in range(ROUNDS):
        ours.append(seconds(PrivateKMeans(k, bounds=(-8, 8), random_state=turn), x))
        learned.append(seconds(PrivateKMeans(k, random_state=turn), x))
        sklearns.append(seconds(KMeans(k, n_init=1, random_state=turn), x))
    print(
        f"{n:,} x {d}, K = {k}: {min(ours):.2f} s (bounds learned: {min(learned):.2f} s); "
        f"scikit-learn's KMeans(n_init=1) {min(sklearns):.2f} s: ours takes "
        f"{min(ours) / min(sklearns):.2f} times as long (target: at most 3)",
        flush=True,
    )
    return min(ours)


def beside_diffprivlib(n: int, d: int, k: int, ours: float) -> None:
    """Print diffprivlib's time and its ratio to ours."""
    limits = np.repeat([[-8.0], [8.0]], d, axis=1)
    peer = Peer()
    theirs = min(peer.fit(blobs(n, d, k), k, 1.0, limits, turn)[1] for turn in range(2))
    print(
        f"{n:,} x {d}, K = {k}: diffprivlib {theirs:.1f} s: {theirs / ours:.0f} times as long as ours "
        f"(target: at least 10)"
    )


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    beside_sklearn(rows, 28, 8)
    beside_diffprivlib(rows, 10, 8, beside_sklearn(rows, 10, 8))


if __name__ == "__main__":
    main()
