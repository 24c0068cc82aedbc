"""The one door: what a row moves is declared, charged and noised, in both neighboring relations."""

from fractions import Fraction

import numpy as np
import pytest

from huemeans import Accountant, BudgetExceeded, Draws
from huemeans.entropy import OperatingSystem
from huemeans.fold import MOMENT_RADIUS
from huemeans.lattice import RADIUS
from huemeans.mechanism import Mechanism


def mechanism(neighbors="add-remove", mu_squared=Fraction(1)):
    """Return a door with room for a thousand draws."""
    return Mechanism(Accountant(mu_squared, Draws(1000, Fraction(1000, 2**39))), OperatingSystem(), neighbors)


DIAGONAL = np.array([True, False, False, True, False, True])
RELEASES = {
    "counts": (lambda m, share: m.counts("p", np.zeros((3, 2), np.int64), share), RADIUS**2, 2),
    "histograms": (lambda m, share: m.histograms("p", np.zeros((4, 9), np.int64), share), 4 * RADIUS**2, 2),
    "sums": (lambda m, share: m.sums("p", np.zeros((3, 5), np.int64), share), RADIUS**2, 4),
    "products": (
        lambda m, share: m.products("p", np.zeros(6, np.int64), DIAGONAL, share),
        MOMENT_RADIUS**4,
        2,
    ),
}


@pytest.mark.parametrize("kind", RELEASES)
@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_a_release_costs_its_share_and_no_more(kind, neighbors):
    """Charged mu^2 is the share, to the rounding of the scale, and never above it."""
    release, _, _ = RELEASES[kind]
    door = mechanism(neighbors)
    release(door, Fraction(1, 100))
    assert Fraction(99999, 100_000) * Fraction(1, 100) < door.accountant.parts["p"] <= Fraction(1, 100)


@pytest.mark.parametrize("kind", RELEASES)
def test_the_noise_covers_the_declared_sensitivity(kind):
    """Scale squared times the share is the squared sensitivity that the module declares."""
    release, square, times = RELEASES[kind]
    share = Fraction(1, 64)
    for neighbors, factor in (("add-remove", 1), ("replace-one", times)):
        _, scale = release(mechanism(neighbors), share)
        steps = scale * RADIUS if kind in ("counts", "histograms") else scale
        assert steps**2 * float(share) == pytest.approx(square * factor, rel=1e-5)


def test_off_diagonal_moments_get_the_noise_they_need():
    """Half the variance of the diagonal: the shifts of any row, weighted so, stay below M^4 / s^2."""
    door = mechanism()
    total = np.zeros(300, dtype=np.int64)
    diagonal = np.arange(300) < 150
    noisy, scale = door.products("p", total, diagonal, Fraction(1, 100))
    ratio = noisy[~diagonal].std() / noisy[diagonal].std()
    assert abs(ratio - np.sqrt(0.5)) < 0.25
    assert noisy[diagonal].std() == pytest.approx(scale, rel=0.4)


def test_nothing_is_released_beyond_what_was_set_aside():
    """The second half fits, a further part does not."""
    door = mechanism()
    door.sums("a", np.zeros((1, 2), np.int64), door.share(500_000))
    door.counts("b", np.zeros((1, 1), np.int64), door.share(500_000))
    with pytest.raises(BudgetExceeded):
        door.counts("c", np.zeros((1, 1), np.int64), door.share(1))


def test_empty_sums_draw_nothing():
    """Where released numbers leave nothing to count, nothing is charged."""
    door = mechanism()
    assert door.counts("p", np.zeros((0, 1), np.int64), Fraction(1, 100))[0].shape == (0, 1)
    assert dict(door.accountant.parts) == {}
