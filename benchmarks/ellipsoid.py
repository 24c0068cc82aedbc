"""How fast the minimum-trace ellipsoid is: beside CVXPY with Clarabel, and beside one dense product."""

import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from huemeans import min_trace_ellipsoid

T = TypeVar("T")


def best_seconds(work: Callable[[], T], repeats: int) -> tuple[float, T]:
    """Return the least wall time of several runs, and the result."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return best, result


def cloud(n: int, d: int) -> np.ndarray:
    """Return correlated points whose features differ in size."""
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, d)) @ (rng.normal(size=(d, d)) * np.geomspace(1, 10, d))


def clarabel(points: np.ndarray) -> float:
    """Return the least trace by CVXPY with Clarabel, made feasible by scaling."""
    import cvxpy as cp  # noqa: PLC0415

    scaled = points / np.abs(points).max()
    gamma = cp.Variable((points.shape[1],) * 2, PSD=True)
    inside = cp.sum(cp.multiply(scaled @ gamma, scaled), axis=1) <= 1
    cp.Problem(cp.Minimize(cp.tr_inv(gamma)), [inside]).solve(solver=cp.CLARABEL)
    worst = np.einsum("ij,jk,ik->i", points, gamma.value, points).max()
    return float(np.trace(np.linalg.inv(gamma.value)) * worst)


def against_clarabel() -> None:
    """Print the ratio of times at 437 x 24, alternating, and how the optima agree."""
    points = cloud(437, 24)
    theirs, ours = float("inf"), float("inf")
    for _ in range(3):
        seconds, trace = best_seconds(lambda: clarabel(points), 1)
        theirs = min(theirs, seconds)
        seconds, found = best_seconds(lambda: min_trace_ellipsoid(points), 5)
        ours = min(ours, seconds)
    print(
        f"437 x 24: {ours:.4f} s, CVXPY with Clarabel {theirs:.2f} s: {theirs / ours:.0f} times as long "
        f"(target: at least 200); traces agree to {abs(found.trace / trace - 1):.1e} (target: 1e-6)"
    )


def against_a_product() -> None:
    """Print scans and time at a million points, and how time grows with their number."""
    times = {}
    square = np.random.default_rng(0).normal(size=(28, 28))
    for n in (250_000, 500_000, 1_000_000):
        points = cloud(n, 28)
        product, _ = best_seconds(lambda points=points: points @ square, 5)
        seconds, found = best_seconds(lambda points=points: min_trace_ellipsoid(points, tol=1e-6), 3)
        times[n] = seconds
        print(
            f"{n:,} x 28: gap {found.gap:.1e} (target: 1e-6) after {found.scans} scans (target: 12), "
            f"{seconds:.2f} s = {seconds / product:.1f} products points @ square (target: 20)"
        )
    print(f"four times the points take {times[1_000_000] / times[250_000]:.1f} times as long (linear: 4)")


if __name__ == "__main__":
    against_clarabel()
    against_a_product()
