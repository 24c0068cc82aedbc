"""Posterior numbers of rows: never negative, never not a number, and right where counts are clear."""

import numpy as np
import pytest

from huemeans.tree import posterior


@pytest.mark.parametrize("cells", [1, 5, 89, 4096])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e3, 1e8])
@pytest.mark.parametrize("noise", [1e-3, 1.0, 1e5])
def test_no_noisy_count_gives_a_number_that_is_none(cells, scale, noise):
    """Far below zero, far above, all equal: what follows can always be sampled and published."""
    rng = np.random.default_rng(0)
    for counts in (
        noise * rng.normal(size=cells) - scale,
        scale * rng.normal(size=cells),
        np.full(cells, -scale),
    ):
        found = posterior(counts, noise)
        assert np.isfinite(found).all()
        assert (found >= 0).all()


def test_clear_counts_stay_and_empty_cells_are_empty():
    """A hundred cells of ten thousand rows among a thousand of none."""
    rng = np.random.default_rng(1)
    true = np.append(np.full(100, 1e4), np.zeros(1000))
    found = posterior(true + 20 * rng.normal(size=1100), 20.0)
    np.testing.assert_allclose(found[:100], 1e4, rtol=0.01)
    assert found[100:].sum() < 1000
