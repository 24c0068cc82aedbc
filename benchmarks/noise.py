"""How fast exact noise is drawn: 1,000 x 29 colored draws, and the sampler beside opendp's if installed."""

import time
from collections.abc import Callable

import numpy as np

from huemeans import ColoredGaussian
from huemeans.entropy import OperatingSystem
from huemeans.sampler import discrete_gaussian

TARGET_SECONDS = 2.0


def best_cpu_seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Return the least CPU time of several runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Print each figure with its target or its ratio."""
    root = np.random.default_rng(0).normal(size=(29, 29))
    noise = ColoredGaussian(root @ root.T)
    seconds = best_cpu_seconds(lambda: noise.draw(1000))
    print(f"1,000 x 29 colored draws: {seconds:.4f} s of CPU (target: under {TARGET_SECONDS} s)")
    ours = best_cpu_seconds(lambda: discrete_gaussian(2**30, 29_000, OperatingSystem()))
    print(f"29,000 discrete Gaussians of scale 2^30: {ours:.4f} s of CPU")
    try:
        import opendp.prelude as dp  # noqa: PLC0415
    except ImportError:
        print("opendp is not installed: no comparison")
        return
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    theirs = dp.m.make_gaussian(*space, scale=2.0**30)
    zeros = [0] * 29_000
    peer = best_cpu_seconds(lambda: theirs(zeros), repeats=2)
    print(f"the same from opendp: {peer:.4f} s of CPU, {peer / ours:.0f} times as long")


if __name__ == "__main__":
    main()
