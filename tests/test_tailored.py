"""TailoredKMeans: its noise, its honest guarantee, and what it keeps from the release."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from huemeans import (
    HuemeansError,
    InvalidArgument,
    TailoredKMeans,
    delta_at,
    differences,
    epsilon_at,
    whitened_limit,
)
from huemeans.testing import seeded_noise

RNG = np.random.default_rng(0)
BLOBS = RNG.normal(size=(240, 3)) * [1, 5, 0.1] + np.repeat([[0, 0, 0], [30, 0, 5], [0, 90, -5]], 80, axis=0)


def fitted(X=BLOBS, n_clusters=3, **options):
    """Fit with settings that most tests share."""
    return TailoredKMeans(n_clusters, random_state=0, **{"epsilon": 1.0, "delta": 1e-5} | options).fit(X)


def traces(model):
    """Return the trace of each cluster's noise."""
    return np.array([np.trace(block) for block in model.noise_covariance_])


@pytest.mark.parametrize("neighbors", ["fixed", "refit"])
@pytest.mark.parametrize("noise", ["colored", "white"])
@pytest.mark.parametrize("calibration", ["pdp", "dp"])
def test_every_row_keeps_the_declared_epsilon_and_one_reaches_it(neighbors, noise, calibration):
    """The largest per-row epsilon is the declared one, to within a millionth, and never above."""
    model = fitted(neighbors=neighbors, noise=noise, calibration=calibration)
    epsilons = model.holder_view().row_epsilon
    assert 1 - 1e-6 < epsilons.max() <= 1
    assert model.guarantee_.epsilon == 1
    assert model.guarantee_.declared_epsilon is None


def check_color_against_white(X):
    """Print white over colored traces, for one variance (the paper's white) and for one per cluster."""
    colored, white = fitted(X, 4), fitted(X, 4, noise="white")
    view = colored.holder_view()
    overall = traces(white) / traces(colored)
    norms = differences(X, view.labels, view.centers).norms
    m = whitened_limit(1.0, 1e-5, "pdp")
    own = np.array([X.shape[1] * norms[view.labels == k].max() ** 2 / m**2 for k in range(4)])
    own_ratio = own / traces(colored)
    print("white / colored trace, one variance overall:", overall, "one per cluster:", own_ratio)
    assert overall.min() > 3
    assert len(view.gaps) == 4
    assert max(view.gaps) < 1e-8


def test_color_beats_white_threefold_in_every_cluster_of_generated_customers(customers):
    """At the same privacy, cluster by cluster."""
    check_color_against_white(customers)


def test_color_beats_white_threefold_in_every_cluster_of_the_papers_table(marketing):
    """The same on the paper's own data."""
    check_color_against_white(marketing)


def check_the_lemma_breaks_its_promise(X):
    """Print how far the lemma breaks its constraint and what epsilon it really keeps."""
    with pytest.raises(InvalidArgument, match="full rank"):
        fitted(X, 4, noise="lemma")
    model = fitted(X, 4, noise="lemma", span=True)
    view = model.holder_view()
    print("lemma: constraint broken by", view.lemma_factors, "real epsilon", model.guarantee_.epsilon)
    assert min(view.lemma_factors) > 10
    assert model.guarantee_.declared_epsilon == 1
    assert model.guarantee_.epsilon > 10
    assert model.guarantee_.epsilon == pytest.approx(view.row_epsilon.max(), rel=1e-6)
    assert "was declared and is not kept" in str(model.guarantee_)


def test_the_lemma_breaks_its_promise_on_generated_customers(customers):
    """The real epsilon is tens of times the declared one, and the guarantee says so."""
    check_the_lemma_breaks_its_promise(customers)


def test_the_lemma_breaks_its_promise_on_the_papers_table(marketing):
    """The same on the paper's own data."""
    check_the_lemma_breaks_its_promise(marketing)


def test_the_papers_constant_states_the_epsilon_it_really_keeps():
    """Epsilon 20 declared at 1e-6 is 24.54; epsilon 1 declared is less than 1 spent."""
    loud = fitted(calibration="paper", epsilon=20.0, delta=1e-6)
    assert loud.guarantee_.epsilon == pytest.approx(24.541, abs=2e-3)
    assert loud.guarantee_.declared_epsilon == 20
    assert "20 was declared and is not kept" in str(loud.guarantee_)
    quiet = fitted(calibration="paper", epsilon=1.0, delta=1e-6)
    assert quiet.guarantee_.epsilon < 1
    assert "1 was declared and is more than is spent" in str(quiet.guarantee_)


@pytest.mark.parametrize(
    ("neighbors", "held"), [("fixed", "the labels"), ("refit", "the starting centroids c(X)")]
)
def test_the_guarantee_says_what_it_holds_fixed_and_leaves_out(neighbors, held):
    """At this table, removal only, holding covariance and labels or start fixed; not DP."""
    text = str(fitted(neighbors=neighbors).guarantee_)
    for phrase in (
        "probabilistic differential privacy at this one table, for the removal of any one of its rows",
        f"holding fixed and treating as public the covariance of the noise and {held}",
        "This is not differential privacy",
        "hockey-stick",
        "adding or replacing rows",
        "K-means run afresh",
        "published or recomputed",
    ):
        assert phrase in text


def test_the_noise_has_the_covariance_it_declares():
    """Whitened errors of 400 releases have unit variance; half or twice the variance is rejected."""
    model = TailoredKMeans(3, random_state=0, delta=1e-5, n_init=1)
    errors = []
    for _ in range(400):
        model.fit(BLOBS)
        view = model.holder_view()
        for error, block in zip(model.cluster_centers_ - view.centers, model.noise_covariance_, strict=True):
            errors.append(error @ np.linalg.solve(block, error))
    mean = np.mean(errors) / 3  # chi-square with 3 degrees of freedom: sd of the mean below 0.03
    assert abs(mean - 1) < 0.15
    assert abs(2 * mean - 1) > 0.15
    assert abs(mean / 2 - 1) > 0.15


def test_blocks_of_one_fit_draw_different_noise_even_when_seeded():
    """A fit opens one stream: equal clusters do not get equal noise, and a second fit repeats the first."""
    X = np.vstack([BLOBS[:80], BLOBS[:80] + 1000])
    with seeded_noise(5):
        model = fitted(X, 2)
        again = fitted(X, 2)
    errors = model.cluster_centers_ - model.holder_view().centers
    assert np.abs(np.abs(errors[0]) - np.abs(errors[1])).min() > 1e-6
    np.testing.assert_array_equal(model.cluster_centers_, again.cluster_centers_)
    assert model.guarantee_.seeded
    assert str(model.guarantee_).startswith("NOT PRIVATE")


def test_random_state_never_seeds_noise():
    """Two fits of one random_state have one partition and two noises."""
    first, second = fitted(), fitted()
    np.testing.assert_array_equal(first.holder_view().centers, second.holder_view().centers)
    assert (first.cluster_centers_ != second.cluster_centers_).all()
    assert not first.guarantee_.seeded


def test_nothing_true_is_kept_as_a_public_attribute():
    """No attribute that a notebook prints holds true centroids or labels, and a pickle holds no view."""
    model = fitted()
    view = model.holder_view()
    public = {name: value for name, value in vars(model).items() if not name.startswith("_")}
    for value in public.values():
        if isinstance(value, np.ndarray):
            assert value.shape != view.labels.shape
            assert value.shape != view.centers.shape or np.abs(value - view.centers).max() > 1e-9
    copy = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(copy.cluster_centers_, model.cluster_centers_)
    with pytest.raises(HuemeansError, match="stays with the object that was fitted"):
        copy.holder_view()


def test_prediction_uses_the_noisy_centroids():
    """Predict is the nearest released centroid, for new rows as well."""
    model = fitted()
    rows = np.vstack([model.cluster_centers_ + 0.01, BLOBS[:5]])
    distances = np.linalg.norm(rows[:, None] - model.cluster_centers_, axis=2)
    np.testing.assert_array_equal(distances.argmin(axis=1), model.predict(rows))
    assert clone(model).fit_predict(BLOBS).shape == (240,)


def test_shapes_of_the_covariance():
    """(K, d, d) with a fixed partition, (K d, K d) with refitting, with the same blocks where none joins."""
    fixed, refit = fitted(), fitted(neighbors="refit")
    assert fixed.noise_covariance_.shape == (3, 3, 3)
    assert refit.noise_covariance_.shape == (9, 9)
    np.testing.assert_allclose(
        fixed.noise_covariance_[1], refit.noise_covariance_[3:6, 3:6], rtol=1e-3, atol=1e-9
    )


def test_constant_features_are_released_as_they_are():
    """A feature in which no row differs needs no noise, and gets its exact value."""
    model = fitted(np.column_stack([BLOBS, np.full(240, 7.25)]))
    assert (model.cluster_centers_[:, 3] == 7.25).all()


def test_the_recomputed_covariance_gives_support_rows_away(customers):
    """For rows that hold the ellipsoid up, the real delta(1) is hundreds of times the promised 1e-5."""
    model = fitted(customers, 4)
    lengths = model.holder_view().row_lengths
    support, inner = np.argsort(-lengths)[:5], np.argsort(lengths)[:2]
    risks = model.recomputed_risk(customers, [*support, *inner], samples=20_000, random_state=0)
    print("recomputed delta(1):", [risk.delta for risk in risks])
    assert max(risk.delta for risk in risks[:5]) > 0.01
    assert max(risk.delta for risk in risks[5:]) < 1e-3
    for risk in risks:
        assert 0 <= risk.delta <= risk.tail <= 1


def test_the_recomputed_risk_matches_the_gaussian_when_nothing_else_moves():
    """White noise whose largest row is not the one removed: the loss is Gaussian, and sampling agrees."""
    model = fitted(noise="white", epsilon=4.0, delta=1e-2)
    view = model.holder_view()
    row = int(np.argsort(view.row_lengths)[-2])
    [risk] = model.recomputed_risk(BLOBS, [row], samples=200_000, random_state=1)
    assert epsilon_at(view.row_lengths[row], 1e-2, "pdp") == pytest.approx(view.row_epsilon[row])
    assert abs(risk.tail - delta_at(view.row_lengths[row], 4.0, "pdp")) < 5 * risk.standard_error
    assert abs(risk.delta - delta_at(view.row_lengths[row], 4.0, "dp")) < 5 * risk.standard_error


def test_a_row_whose_removal_leaves_a_single_row_is_given_away():
    """Without it, no release would be possible: delta is 1."""
    X = np.vstack([BLOBS[:80], [[500.0, 0, 0], [501.0, 0, 0]]])
    model = fitted(X, 2)
    [risk] = model.recomputed_risk(X, [80], samples=100)
    assert (risk.delta, risk.tail) == (1, 1)


def test_the_summary_of_risks_is_a_distribution():
    """Five figures in order, from the smallest to the largest epsilon."""
    values = list(fitted().holder_view().summary().values())
    assert values == sorted(values)
    assert len(values) == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0}, r"^epsilon=0 .* above 0"),
        ({"epsilon": -1.0}, r"^epsilon=-1\.0 "),
        ({"epsilon": float("nan")}, r"^epsilon=nan "),
        ({"epsilon": float("inf")}, r"^epsilon=inf "),
        ({"delta": 0}, r"^delta=0 .* between 0 and 1"),
        ({"delta": 1.5}, r"^delta=1\.5 "),
        ({"noise": "pink"}, r"^noise='pink' .* 'colored', 'white', 'lemma'"),
        ({"neighbors": "replace"}, r"^neighbors='replace' .* 'fixed', 'refit'"),
        ({"calibration": "zcdp"}, r"^calibration='zcdp' "),
        ({"n_clusters": 0}, r"^n_clusters=0 "),
        ({"n_clusters": 1000}, r"^n_clusters=1000 .* Use fewer clusters"),
        ({"max_iter": 0}, r"^max_iter=0 "),
        ({"n_init": 1.5}, r"^n_init=1\.5 "),
        ({"epsilon": 1e-9}, r"^epsilon=1e-09 .* Raise epsilon"),
    ],
)
def test_bad_parameters_are_refused(options, message):
    """Each message names the parameter, its value, what was expected and what to do."""
    with pytest.raises(InvalidArgument, match=message):
        fitted(**{"n_clusters": 3} | options)


def test_too_few_different_rows_are_refused_without_a_count():
    """Equal rows fill no second cluster; the message knows nothing of the rows, and no warning is given."""
    with pytest.raises(InvalidArgument, match="rows in every cluster"):
        fitted(np.ones((20, 2)), 3)


def test_rows_outside_the_table_are_refused():
    """Chosen rows must exist, and the table must be the fitted one."""
    model = fitted()
    with pytest.raises(InvalidArgument, match=r"^rows="):
        model.recomputed_risk(BLOBS, [240])
    with pytest.raises(InvalidArgument, match=r"^X=<another table>"):
        model.recomputed_risk(BLOBS[:-1], [0])


def test_text_and_shapes_are_refused_without_a_value():
    """No cell of the table stands in a message, of fit, predict or the risks."""
    model = fitted()
    for call in (model.fit, model.predict, lambda X: model.recomputed_risk(X, [0])):
        for bad in ([["4111-SECRET", "1"], ["3", "4"]], BLOBS[:, 0], BLOBS + 1j, np.full((9, 3), np.nan)):
            with pytest.raises(InvalidArgument, match=r"^X=<table") as caught:
                call(bad)
            assert "SECRET" not in str(caught.value)
            assert "(240" not in str(caught.value)
    model = fitted()
    with pytest.raises(InvalidArgument, match=r"^X=<another table>"):
        model.recomputed_risk(BLOBS[::-1].copy(), [0])


def test_the_holders_covariance_is_marked_and_not_pickled():
    """It prints no entry, and a pickle does not carry it."""
    model = fitted()
    assert (
        repr(model.noise_covariance_)
        == "<for the data holder, not part of a release: array of shape (3, 3, 3)>"
    )
    copy = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert not hasattr(copy, "noise_covariance_")


def test_a_single_row_is_an_error_in_the_estimators_own_words():
    """The remedy names the option that the estimator has."""
    X = np.vstack([BLOBS, [[1e5, 1e5, 1e5]]])
    with pytest.raises(InvalidArgument, match=r"^n_clusters=4 .* neighbors='refit'"):
        fitted(X, 4)
    assert fitted(X, 4, neighbors="refit").cluster_centers_.shape == (4, 3)


def test_seeded_centroids_are_marked():
    """What a seeded fit releases says so wherever it is printed."""
    with seeded_noise(1):
        model = fitted()
    assert repr(model.cluster_centers_).startswith("NOT PRIVATE")
