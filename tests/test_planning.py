"""Plans add up, and depend on public figures alone."""

import itertools

import pytest

from huemeans.budget import SHARES
from huemeans.planning import make_plan, most_draws, most_nodes

GRID = list(
    itertools.product(
        [0.5, 10, 300, 5_000, 10**6, 10**10], [1, 2, 4, 30, 1000], [1, 2, 15, 300], [1e-4, 0.05, 0.5, 8]
    )
)


@pytest.mark.parametrize("d", [1, 2, 4, 30, 1000])
def test_the_parts_of_every_plan_add_up(d):
    """Integers that sum to one million, none negative, levels within the tree's share."""
    for n, width, k, mu in GRID:
        if width != d:
            continue
        plan = make_plan(n, d, k, mu)
        assert sum(plan.shares.values()) == SHARES
        assert min(plan.shares.values()) >= 0
        assert sum(plan.level_shares) <= plan.shares["tree"]
        assert len(plan.level_shares) == len(plan.levels)
        assert 1 <= plan.passes <= 6
        assert list(plan.levels) == sorted(set(plan.levels))


def test_little_data_gets_one_honest_pass_and_much_data_a_tree():
    """With next to no rows behind a unit of noise there is no tree; with many there is."""
    poor, rich = make_plan(100, 10, 3, 0.03), make_plan(10**6, 10, 3, 0.3)
    assert (poor.levels, poor.passes, poor.shares["tree"]) == ((), 1, 0)
    assert len(rich.levels) >= 3
    assert rich.passes == 6


@pytest.mark.parametrize(("d", "k"), [(1, 1), (2, 15), (28, 8), (1000, 300)])
def test_draws_are_capped_whatever_the_tree_does(d, k):
    """Cells of a level, leaves and their sums stay within the cap that the guarantee is charged for."""
    assert most_nodes(d) >= 64
    assert most_draws(d, k) >= 6 * most_nodes(d) * (1 + d)
    assert most_draws(d, k) < 4 * 10**6
