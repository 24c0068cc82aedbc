"""diffprivlib's K-means in an environment of its own: a worker that answers fits over a pipe.

Run by the Python of ``.venv-peers`` (``make .venv-peers``), it reads pickled (X, options) and writes pickled
(centroids, seconds).  ``Peer`` is its other end.
"""

import pickle
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import BinaryIO

import numpy as np

PYTHON = Path(__file__).parents[1] / ".venv-peers" / "bin" / "python"


class Peer:
    """A worker that lives as long as this process."""

    def __init__(self) -> None:
        if not PYTHON.exists():
            raise SystemExit(f"{PYTHON} is not there: run 'make .venv-peers' first.")
        self.process = subprocess.Popen(  # noqa: S603  # our own file
            [PYTHON, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def fit(
        self, x: np.ndarray, k: int, epsilon: float, bounds: np.ndarray, seed: int
    ) -> tuple[np.ndarray, float]:
        """Return diffprivlib's centroids, and the seconds of its fit."""
        pickle.dump((x, k, epsilon, bounds, seed), self.process.stdin)
        self.process.stdin.flush()
        return pickle.load(self.process.stdout)  # noqa: S301  # from our own process


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer fits until the pipe closes."""
    from diffprivlib.models import KMeans  # noqa: PLC0415  # only there

    warnings.simplefilter("ignore")
    while True:
        try:
            x, k, epsilon, bounds, seed = pickle.load(source)  # noqa: S301  # from our own process
        except EOFError:
            return
        start = time.perf_counter()
        model = KMeans(k, epsilon=epsilon, bounds=(bounds[0], bounds[1]), random_state=seed).fit(x)
        answer = np.asarray(model.cluster_centers_), time.perf_counter() - start
        pickle.dump(answer, sink)
        sink.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
