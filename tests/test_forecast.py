"""Forecasts: said before a row is touched, and near what a fit then does."""

import numpy as np
import pytest

from huemeans import InvalidArgument, PrivateKMeans, plan
from huemeans.testing import seeded_noise


def round_blobs(n, d, k, seed=0):
    """Return k far-apart round clusters of equal size and unit deviation."""
    rng = np.random.default_rng(seed)
    centers = 12.0 * rng.normal(size=(k, d))
    return centers[np.arange(n) % k] + rng.normal(size=(n, d))


@pytest.mark.parametrize(
    ("n", "d", "k", "epsilon"), [(20_000, 4, 3, 1.0), (50_000, 2, 5, 0.5), (8000, 10, 2, 2.0)]
)
@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_error_bars_are_near_those_that_a_fit_releases(n, d, k, epsilon, neighbors):
    """The forecast deviation of a centroid's noise is right to a factor of two; so is that of a size."""
    X = round_blobs(n, d, k)
    said = plan(n, d, k, epsilon, 1e-6, neighbors=neighbors)
    with seeded_noise(3):
        model = PrivateKMeans(k, epsilon=epsilon, bounds=(-60, 60), neighbors=neighbors, random_state=0).fit(
            X
        )
    released = np.sqrt(np.einsum("kjj->k", model.noise_covariance_).mean() / d)
    assert 0.5 < said.center_error / released < 2
    assert said.size_error == pytest.approx(model._clusters.count_noise, rel=0.3)
    assert said.mu == pytest.approx(model.plan_.mu, rel=1e-12)


@pytest.mark.parametrize("learns_bounds", [False, True])
@pytest.mark.parametrize("rows", [1, 4])
def test_the_parts_are_the_whole(learns_bounds, rows):
    """Squares add up to mu^2, which people with more rows make smaller."""
    said = plan(30_000, 8, 5, 1.0, 1e-6, learns_bounds=learns_bounds, max_rows_per_person=rows)
    assert sum(part**2 for part in said.parts.values()) == pytest.approx(said.mu**2, rel=1e-12)
    assert ("bounds" in said.parts) == learns_bounds
    one = plan(30_000, 8, 5, 1.0, 1e-6, learns_bounds=learns_bounds)
    assert said.mu == pytest.approx(one.mu / rows, rel=1e-12)


def test_parts_are_those_that_a_fit_spends():
    """What a fit on as many rows charges under each name is what was forecast, or less if it stops early."""
    said = plan(20_000, 4, 3, 1.0, 1e-6)
    with seeded_noise(1):
        spent = PrivateKMeans(3, bounds=(-60, 60), random_state=0).fit(round_blobs(20_000, 4, 3)).plan_.parts
    assert set(said.parts) == set(spent) - {"unspent"}
    for name, mu in said.parts.items():
        assert spent[name] <= mu * 1.02
        assert spent[name] > 0.9 * mu or name == "tree"


def test_more_of_anything_good_costs_less_accuracy():
    """Rows and epsilon lower the forecast loss; features and clusters raise it."""
    middle = plan(10_000, 8, 6, 1.0).loss_inflation
    better = [
        plan(40_000, 8, 6, 1.0),
        plan(10_000, 8, 6, 4.0),
        plan(10_000, 2, 6, 1.0),
        plan(10_000, 8, 2, 1.0),
    ]
    worse = [plan(10_000, 8, 6, 1.0, neighbors="replace-one"), plan(10_000, 8, 6, 1.0, 1e-12)]
    assert all(said.loss_inflation < middle for said in better)
    assert all(said.loss_inflation > middle for said in worse)


def test_a_hopeless_release_is_called_so():
    """The words follow the figure: good, in need of help, too much to publish."""
    assert "publish" in str(plan(100, 20, 10, 0.1))
    assert "would help" in str(plan(400, 10, 5, 1.0))
    assert str(plan(10**6, 4, 3)).endswith("% to the loss.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, r"^n=0 "),
        ({"n": 2.5}, r"^n=2\.5 "),
        ({"d": 0}, r"^d=0 "),
        ({"k": 5000}, r"^k=5000 .* at most 4096"),
        ({"epsilon": -1}, r"^epsilon=-1 "),
        ({"delta": 1.0}, r"^delta=1\.0 "),
        ({"neighbors": "both"}, r"^neighbors='both' "),
        ({"max_rows_per_person": 0}, r"^max_rows_per_person=0 "),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    """Each by its name and value."""
    with pytest.raises(InvalidArgument, match=message):
        plan(**({"n": 1000, "d": 2, "k": 3} | arguments))
