"""How a private fit spends its budget: a pure function of public figures and of one noisy row count.

All that decides is how many rows stand behind a unit of noise, ``power = n * mu``.  With much data, a deep
tree along learned directions and up to six refining passes; with little, a coarse histogram, or none, and one
honest pass.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from huemeans import checks, learned_bounds
from huemeans.box import MOST_DEPTH
from huemeans.budget import SHARES
from huemeans.discretization import Draws, largest_mu

COUNT_SHARE: Final = 10_000
"""Spent on the noisy row count, before the plan is made."""

LOSS_SHARE: Final = 10_000
"""Spent on the released loss, after the last pass."""

BOUNDS_SHARE: Final = 80_000
"""Spent first, on learned bounds, if there are no public ones; all other shares are of what is left."""

MOST_CLUSTERS: Final = 4096
"""What the private summary is sampled finely enough for."""

_MOST_MU: Final = 64  # no plan has use for more, and epsilon is then some thousands
_SCALE_BITS: Final = 39  # up to that mu every scale is at least 2^19.5: sum 1/s^2 <= draws / 2^39
_LEAST_CLIPPED: Final = 0.0005
_MOST_CLIPPED: Final = 0.2
_COUNT_WEIGHT: Final = 0.2  # rho / s: how far means are expected to lie from their reference
_PER_CELL: Final = 8.0  # rows a unit of noise in the first cells of a tree, had they all equal shares
_MOST_PASSES: Final = 6
_DISTANCES: Final = 64  # bins of the two histograms of distances
_GROWTH: Final = 1.5  # how much more than the last each pass gets
_DEEPEST_START: Final = 10
_MOST_LEVELS: Final = 6
_MOST_NODES: Final = 4096
_MOST_LEAF_DRAWS: Final = 200_000


@dataclass(frozen=True)
class Rules:
    """The constants behind a plan, chosen on generated blobs (see the benchmark) and on nothing else."""

    learn_at: float = 80.0
    """Directions are learned when power exceeds this times sqrt(d)."""

    pass_at: float = 1.0
    pass_again_at: float = 3.5
    """One pass up to a power of the first times k sqrt(d), and one more for each factor of the second."""

    tree_at: float = 8.0
    """A tree is grown when power exceeds this times k."""

    mean_at: float = 60.0
    """The mean gets d times this over power^2 of the budget, within bounds."""

    tree: float = 0.20
    leaves: float = 0.20
    tree_of_few: float = 0.40
    leaves_of_few: float = 0.20
    """The shares of the tree and of its leaves, and those with at most three features."""

    radius: float = 0.02
    moments: float = 0.15
    first_level: float = 12.0
    """The first level is counted so well that n / k rows stand this many deviations clear, if it can be."""


RULES: Final = Rules()


@dataclass(frozen=True)
class Plan:
    """Shares of mu^2 in millionths, and the sizes that go with them."""

    shares: dict[str, int]
    levels: tuple[int, ...]
    """The levels of the tree that are counted."""

    level_shares: tuple[int, ...]
    directions: int
    """The most directions that the tree is split along."""

    few: bool
    """Whether there are so few features that the box of the domain is split as it is."""

    learns_directions: bool
    passes: int


def most_nodes(d: int) -> int:
    """Return the most cells that are counted at one level of the tree."""
    return max(_MOST_NODES // 64, min(_MOST_NODES, _MOST_LEAF_DRAWS // (_MOST_LEVELS * d)))


def most_draws(d: int, k: int) -> int:
    """Return the most discrete Gaussians that any plan draws after the bounds, on any path."""
    leaves = _MOST_LEVELS * most_nodes(d)
    first_level = 2**_DEEPEST_START
    return (
        2 + _DISTANCES + d + d * (d + 1) // 2 + (leaves + first_level) * (1 + d) + _MOST_PASSES * k * (1 + d)
    )


def allowance(epsilon: float, delta: float, d: int, k: int, *, learns_bounds: bool) -> tuple[float, Draws]:
    """Return the mu that a fit may spend in all, and the draws that it may make for it (Theorem D)."""
    count = most_draws(d, k) + learned_bounds.draws(d) * learns_bounds
    caps = Draws(count, Fraction(count, 2**_SCALE_BITS))
    mu = largest_mu(epsilon, delta, caps)
    if mu > _MOST_MU:
        checks.refuse("epsilon", repr(epsilon), "an epsilon that protects", "Pass 1.0, or at most 10")
    return mu, caps


def clipped_share(rows: float, d: int, mu: float) -> float:
    """Return the share of a cluster to clip: about sqrt(d) / mu rows (Huang, Liang and Yi 2021)."""
    return float(np.clip(np.sqrt(d) / (mu * max(rows, 1.0)), _LEAST_CLIPPED, _MOST_CLIPPED))


def split_pass(share: Fraction) -> tuple[Fraction, Fraction]:
    """Split the mu^2 of a pass between counts and sums, rho : s: least is then (s + rho)^2 / mu^2."""
    counts = share * round(1000 * _COUNT_WEIGHT / (1 + _COUNT_WEIGHT)) / 1000
    return counts, share - counts


def make_plan(n: float, d: int, k: int, mu: float, rules: Rules = RULES) -> Plan:
    """Plan a fit for about ``n`` rows, ``d`` features, ``k`` clusters and a Gaussian-DP budget of ``mu``."""
    power = max(n, 1.0) * mu
    few = d <= learned_bounds.FEW_FEATURES
    learns = not few and power > rules.learn_at * np.sqrt(d)
    grows = power > rules.tree_at * k and (few or learns)
    passes = _passes(power / (k * np.sqrt(d)), rules)
    tree, leaves = (rules.tree_of_few, rules.leaves_of_few) if few else (rules.tree, rules.leaves)
    mean = 0.0 if few and grows else float(np.clip(rules.mean_at * d / power**2, 0.03, 0.4))
    parts = {
        "mean": mean,
        "radius": rules.radius if learns else 0.0,
        "moments": rules.moments if learns else 0.0,
        "tree": tree if grows else 0.0,
        "leaves": leaves if grows else 0.0,
    }
    shares = {"count": COUNT_SHARE, "loss": LOSS_SHARE} | {
        name: int(SHARES * part) for name, part in parts.items()
    }
    left = SHARES - sum(shares.values())
    weights = _GROWTH ** np.arange(passes)
    weights /= weights.sum()
    shares |= {f"pass {at}": int(left * weight) for at, weight in enumerate(weights, start=1)}
    shares[f"pass {passes}"] += SHARES - sum(shares.values())
    directions = d if few else min(d, 10)
    levels = _levels(power * np.sqrt(tree), directions) if grows else ()
    portions = _portions(levels, shares["tree"], power, k, rules)
    return Plan(shares, levels, portions, directions, few, learns, passes)


def _passes(power_a_mean: float, rules: Rules) -> int:
    """Return how many passes pay: each halves what is left to gain, and all share one budget."""
    more = np.log(max(power_a_mean, 1e-300) / rules.pass_at) / np.log(rules.pass_again_at)
    return int(np.clip(np.rint(1 + more), 1, _MOST_PASSES))


def _levels(power: float, directions: int) -> tuple[int, ...]:
    """Choose where the tree starts, how many levels it skips at a time and how deep it may go."""
    start = int(np.clip(np.floor(np.log2(max(power / _PER_CELL, 1.0))), 0, _DEEPEST_START))
    deepest = int(np.clip(np.floor(np.log2(max(power, 1.0))) + directions, start, MOST_DEPTH))
    return tuple(range(start, deepest + 1, 2 if directions > 1 else 1))[:_MOST_LEVELS]


def _portions(levels: tuple[int, ...], share: int, power: float, k: int, rules: Rules) -> tuple[int, ...]:
    """Split the tree's share: the first level as much as it needs, the others growing by 2^(1/3) a level."""
    if not levels:
        return ()
    growth = 2.0 ** (np.array(levels, dtype=float) / 3)
    growth /= growth.sum()
    needed = (rules.first_level * k / power) ** 2 * SHARES / share
    first = float(np.clip(needed, growth[0], 0.7)) if len(levels) > 1 else 1.0
    growth = np.concatenate([[first], growth[1:] / max(growth[1:].sum(), 1e-300) * (1 - first)])
    return tuple(int(portion * share) for portion in growth)
