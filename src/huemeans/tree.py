"""A tree of noisy counts over the cells of a box, and what it says about the number of rows in each cell.

The tree starts at a level whose cells can be told from noise, and a cell is split while its noisy count
stands clear of the noise of the next level.  What is split and what is not is then made consistent by least
squares, and small counts are shrunk by a prior that is fitted level by level.  Nothing here sees a row.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from huemeans.box import Box

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_FITTING: Final = 30  # rounds of expectation-maximization, far past convergence
_LOWEST: Final = -1e4  # deviations: no noise falls below, and floats hold what follows
_LIKELY: Final = 0.8  # chance of holding rows that one of many cells must have to be kept
_FEW_CELLS: Final = 90  # so few cells are all kept: what is empty among them cannot look like clusters


@dataclass(frozen=True, eq=False)
class Counted:
    """The cells of one level that were counted."""

    level: int
    keys: Integers
    """Sorted."""

    counts: Floats
    noise: float
    split: NDArray[np.bool_]
    """Which of them were counted again at the next level, in parts."""


@dataclass(eq=False)
class Tree:
    """A tree that grows level by level from noisy counts."""

    box: Box
    levels: list[Counted] = field(default_factory=list)

    def children(self, level: int) -> Integers:
        """Return the sorted keys, at ``level``, of all cells below those that were split last."""
        nodes, above = np.zeros(1, dtype=np.int64), 0
        if self.levels:
            last = self.levels[-1]
            nodes, above = last.keys[last.split], last.level
        spread = np.arange(1 << (level - above), dtype=np.int64)
        return np.sort(((nodes[:, None] << (level - above)) | spread).ravel())

    def grow(
        self, level: int, keys: Integers, counts: Floats, noise: float, split: tuple[float, int]
    ) -> None:
        """Take noisy counts of ``keys``; split those above ``split[0]``, the largest ``split[1]`` of them."""
        split_above, room = split
        order = np.argsort(-counts)
        chosen = np.zeros(len(keys), dtype=bool)
        chosen[order[counts[order] > split_above][:room]] = True
        self.levels.append(Counted(level, keys, counts, noise, chosen))

    def leaves(self, clear: float) -> list[tuple[int, Integers, Floats, NDArray[np.bool_]]]:
        """Return by levels what was not split: level, keys, posterior counts, and which stand clear of noise.

        Nothing is returned if no cell seems to hold a row.
        """
        found = []
        for counted, estimates in zip(self.levels, self.consistent(), strict=True):
            leaf = ~counted.split
            if leaf.any():
                fitted = estimates[leaf]
                mass = posterior(fitted, counted.noise)
                found.append((counted.level, counted.keys[leaf], mass, fitted > clear * counted.noise))
        return found if any(mass.any() for _, _, mass, _ in found) else []

    def consistent(self) -> list[Floats]:
        """Return the least-squares counts of all cells: those of parts add up to that of the whole."""
        estimates = [counted.counts.copy() for counted in self.levels]
        variances = [np.full(len(counted.keys), counted.noise**2) for counted in self.levels]
        for at in reversed(range(len(self.levels) - 1)):
            total, spread, _ = self._parts(at, estimates, variances)
            split, own = self.levels[at].split, variances[at]
            combined = estimates[at] * spread + total * own
            weight = spread + own
            estimates[at] = np.where(split, combined / weight, estimates[at])
            variances[at] = np.where(split, own * spread / weight, own)
        for at in range(len(self.levels) - 1):
            total, spread, parent = self._parts(at, estimates, variances)
            gap = (estimates[at] - total)[parent]
            estimates[at + 1] += gap * variances[at + 1] / spread[parent]
        return estimates

    def _parts(
        self, at: int, estimates: list[Floats], variances: list[Floats]
    ) -> tuple[Floats, Floats, NDArray[np.intp]]:
        """Return the sums and variances over the parts of each cell of a level, and each part's cell."""
        whole, parts = self.levels[at], self.levels[at + 1]
        parent = np.searchsorted(whole.keys, parts.keys >> (parts.level - whole.level))
        size = len(whole.keys)
        total: Floats = np.bincount(parent, weights=estimates[at + 1], minlength=size).astype(np.float64)
        spread: Floats = np.bincount(parent, weights=variances[at + 1], minlength=size).astype(np.float64)
        return total, spread, parent


def posterior(counts: Floats, noise: float) -> Floats:
    """Return the posterior means of numbers of rows, given noisy ones.

    The prior, fitted to these very counts: a cell is empty, or its number is exponential.  Of many cells,
    those that may well be empty are taken for empty: their sum would draw centroids into nowhere.
    """
    occupied, mean = 0.5, max(float(counts.mean()), noise)
    for _ in range(_FITTING):
        shifted = np.maximum(counts / noise - noise / mean, _LOWEST)
        given = noise * (shifted + np.exp(-0.5 * shifted**2 - _LOG_ROOT - log_ndtr(shifted)))
        given = np.maximum(given, 0.0)
        full = 0.5 * shifted**2 + log_ndtr(shifted) + np.log(noise / mean * occupied) + _LOG_ROOT
        chance = 1 / (1 + np.exp(np.minimum(np.log(1 - occupied) - full, 700.0)))
        occupied = float((chance.sum() + 0.5) / (len(counts) + 1))
        mean = float((chance @ given + noise) / (chance.sum() + 1))
    least = 0.0 if len(counts) <= _FEW_CELLS else _LIKELY
    return np.where(chance > least, chance * given, 0.0)


_LOG_ROOT: Final = 0.5 * np.log(2 * np.pi)
