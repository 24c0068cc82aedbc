"""PrivateKMeans: its budget, its control flow on neighboring tables, its answers to any table."""

import traceback
import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans

from huemeans import HuemeansError, InvalidArgument, PrivateKMeans
from huemeans.mechanism import Mechanism
from huemeans.testing import seeded_noise

BOX = (-15, 25)


def blobs(n, d=2, k=4, seed=0):
    """Return separated round clusters within BOX."""
    rng = np.random.default_rng(seed)
    corners = np.array(
        [[0] * d, [9] * d, [0, 9] * (d // 2) + [0] * (d % 2), [9, 0] * (d // 2) + [9] * (d % 2)]
    )
    return corners[rng.integers(k, size=n)] + rng.normal(size=(n, d))


def fitted(X, n_clusters=4, **options):
    """Fit with settings that most tests share."""
    return PrivateKMeans(n_clusters, **{"epsilon": 1.0, "bounds": BOX, "random_state": 0} | options).fit(X)


def loss(X, centers):
    """Return the mean squared distance to the nearest center."""
    return (np.linalg.norm(X[:, None] - centers, axis=2).min(axis=1) ** 2).mean()


def ratio(X, model):
    """Return the loss over that of the non-private best of ten."""
    base = KMeans(len(model.cluster_centers_), n_init=10, random_state=0).fit(X)
    return loss(X, model.cluster_centers_) / (base.inertia_ / len(X))


@pytest.mark.usefixtures("steady")
@pytest.mark.parametrize("d", [1, 2, 4, 12])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_with_enough_rows_the_loss_is_that_of_k_means(d, neighbors):
    """20,000 rows at epsilon 1: within 5 % of the non-private loss."""
    X = blobs(20_000, d, k=4 if d > 1 else 2)
    assert ratio(X, fitted(X, 4 if d > 1 else 2, neighbors=neighbors)) < 1.05


@pytest.mark.usefixtures("steady")
def test_noise_is_not_idle():
    """Control: at a hundredth of the epsilon the same fit is visibly worse."""
    X = blobs(2000)
    assert ratio(X, fitted(X, epsilon=0.01)) > 1.5 * ratio(X, fitted(X))


class Recorder:
    """Takes the place of the noise of a fit: records every exact sum, and plays answers back.

    All is charged as ever, for what is left of the budget decides over the noise that follows.
    """

    def __init__(self, monkeypatch, answers=None):
        self.calls, self.answers = [], answers
        original = Mechanism._noisy

        def noisy(door, part, total, scale, square):
            at = len(self.calls)
            result = original(door, part, total, scale, square)
            if answers is not None:
                result = answers[at].copy()
            self.calls.append((part, total.copy(), scale, square, result.copy()))
            return result

        monkeypatch.setattr(Mechanism, "_noisy", noisy)


def replayed(monkeypatch, X, neighbor, **options):
    """Return the recorded calls on X, and those on its neighbor that got the very same noisy answers."""
    here = Recorder(monkeypatch)
    fitted(X, **options)
    monkeypatch.undo()
    there = Recorder(monkeypatch, [call[4] for call in here.calls])
    fitted(neighbor, **options)
    monkeypatch.undo()
    return here.calls, there.calls


NEIGHBORS = {
    "an inner row": lambda X: np.delete(X, 5, axis=0),
    "a corner of the box": lambda X: np.vstack([X, [[25.0] * X.shape[1]]]),
    "far outside": lambda X: np.vstack([X, [[1e300] * X.shape[1]]]),
    "a missing row": lambda X: np.vstack([X, [[np.nan] * X.shape[1]]]),
}


@pytest.mark.parametrize("name", NEIGHBORS)
@pytest.mark.parametrize(("n", "d", "options"), [
    (3000, 2, {}), (3000, 6, {"epsilon": 3.0}), (60, 3, {}), (3000, 2, {"bounds": "private"}),
    (3000, 2, {"n_clusters": "auto", "k_range": (2, 6)}),
])  # fmt: skip
def test_one_row_moves_every_sum_by_no_more_than_was_declared(monkeypatch, name, n, d, options):
    """Same answers, same control flow; each shift within its sensitivity; all shifts within mu^2."""
    X = blobs(n, d)
    here, there = replayed(monkeypatch, X, NEIGHBORS[name](X), **options)
    assert [call[0] for call in here] == [call[0] for call in there]
    spent = Fraction(0)
    for (part, total, scale, square, _), (_, other, other_scale, other_square, _) in zip(
        here, there, strict=True
    ):
        assert (total.shape, scale, square) == (other.shape, other_scale, other_square), part
        shift = sum(int(v) ** 2 for v in (total - other).ravel())
        assert shift <= square or square == 0
        spent += Fraction(shift, scale**2)
    mu = fitted(X, **options).plan_.mu
    assert 0 < spent <= Fraction(mu) ** 2 * (1 + Fraction(1, 10**9))


def test_replacing_a_row_stays_within_the_replace_one_sensitivities(monkeypatch):
    """A row that jumps from corner to corner moves two cells, as declared."""
    X = blobs(3000, 5)
    other = X.copy()
    X[7], other[7] = 25.0, -15.0
    here, there = replayed(monkeypatch, X, other, neighbors="replace-one", epsilon=3.0)
    for (part, total, _, square, _), (_, moved, _, _, _) in zip(here, there, strict=True):
        shift = sum(int(v) ** 2 for v in (total - moved).ravel())
        assert shift <= square or square == 0, part


def test_a_halved_sensitivity_would_be_noticed(monkeypatch):
    """Control: for some sum a corner row reaches more than half of what is declared."""
    X = blobs(3000, 2)
    here, there = replayed(monkeypatch, X, NEIGHBORS["a corner of the box"](X))
    shares = [
        sum(int(v) ** 2 for v in (a[1] - b[1]).ravel()) / a[3]
        for a, b in zip(here, there, strict=True)
        if a[3]
    ]
    assert max(shares) > 0.5


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 50.0])
@pytest.mark.parametrize("bounds", [BOX, "private"])
@pytest.mark.parametrize("rows", [1, 3])
def test_the_parts_add_up_to_the_declared_budget(epsilon, bounds, rows):
    """Squares of the parts, the unspent one included, sum to mu^2; mu is that of (epsilon, delta)."""
    model = fitted(blobs(2000), epsilon=epsilon, bounds=bounds, max_rows_per_person=rows)
    parts = model.plan_.parts
    assert sum(part**2 for part in parts.values()) == pytest.approx(model.plan_.mu**2, rel=1e-9)
    assert ("bounds" in parts) == isinstance(bounds, str)
    assert model.guarantee_.epsilon == epsilon
    assert model.guarantee_.mu == pytest.approx(rows * model.plan_.mu)


TABLES = {
    "no rows": np.empty((0, 3)),
    "one row": np.ones((1, 3)),
    "fewer rows than clusters": np.eye(3),
    "equal rows": np.full((500, 3), 4.0),
    "all missing": np.full((50, 3), np.nan),
    "infinite": np.full((50, 3), np.inf),
    "odd": np.array([[np.nan, 1e308, -1e308], [5e-324, -0.0, np.inf]] * 20),
    "integers": np.arange(300).reshape(100, 3) % 17,
    "float32": blobs(500, 3).astype(np.float32),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("bounds", [BOX, "private"])
@pytest.mark.parametrize("n_clusters", [1, 4, "auto"])
def test_every_table_is_answered_without_a_word(name, bounds, n_clusters):
    """No content raises or warns, and every released number is finite (but for unknown covariances)."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fitted(TABLES[name], n_clusters, bounds=bounds)
    for value in (model.cluster_centers_, model.cluster_sizes_, model.inertia_, model.bounds_):
        assert np.isfinite(value).all()
    low, high = model.bounds_
    assert ((model.cluster_centers_ >= low) & (model.cluster_centers_ <= high)).all()


def test_wide_bounds_do_not_cost_a_cluster():
    """Bounds five times as wide as the rows: no noise in an empty cell draws one of 20 x 5 centroids away."""
    rng = np.random.default_rng(3)
    X = rng.uniform(0.2, 0.8, size=(5, 2))[rng.integers(5, size=20_000)] + 0.05 * rng.normal(size=(20_000, 2))
    for seed in range(20):
        with seeded_noise(seed):
            assert ratio(X, fitted(X, 5, bounds=(-1, 2), random_state=seed % 6)) < 1.01


@pytest.mark.usefixtures("steady")
def test_auto_finds_the_number_of_separated_clusters():
    """Four round clusters are found as four."""
    assert len(fitted(blobs(20_000), "auto").cluster_centers_) == 4


@pytest.mark.usefixtures("steady")
def test_released_figures_are_near_the_true_ones():
    """Sizes, loss and error bars of a large table."""
    X = blobs(40_000)
    model = fitted(X)
    labels = model.predict(X)
    np.testing.assert_allclose(np.bincount(labels, minlength=4), model.cluster_sizes_, atol=300)
    assert model.inertia_ == pytest.approx(-model.score(X), rel=0.05)
    assert model.noise_covariance_.shape == (4, 2, 2)
    assert (np.linalg.eigvalsh(model.noise_covariance_) > 0).all()
    assert model.separation()[~np.eye(4, dtype=bool)].max() < 1e-6
    assert model.relabel_probability(X).mean() < 0.01
    assert model.summary_.counts.sum() == pytest.approx(40_000, rel=0.2)


def test_confidence_sets_hold_the_clipped_means():
    """Over 40 fits of four clusters, sets at 90 % hold the mean of the rows that the last pass saw."""
    X, held, seen = blobs(4000), 0, 0
    for seed in range(40):
        model = fitted(X, random_state=seed)
        for found in model.confidence_ellipsoids(0.9):
            rows = X[np.linalg.norm(X - found.reference, axis=1) < 4.5]
            held += bool(found.contains(rows.mean(axis=0))[0])
            seen += 1
    assert 0.75 < held / seen <= 1  # clipping moves the means a little: 0.9 is for the clipped ones


@pytest.mark.usefixtures("steady")
def test_features_that_matter_more_are_noised_less():
    """Weight a hundred on one feature takes variance from it and gives it to the other; equal ones do not."""
    X = blobs(4000)
    for weights, low, high in (([100.0, 1.0], 0.05, 0.2), ([1.0, 1.0], 0.6, 1.7)):
        variances = np.diag(fitted(X, feature_weights=weights).noise_covariance_.mean(axis=0))
        assert low < variances[0] / variances[1] < high


@pytest.mark.usefixtures("steady")
def test_people_with_many_rows_are_limited_and_the_guarantee_says_how():
    """With each row's person the limit is enforced; without, it is the holder's promise."""
    X = blobs(3000)
    person = np.arange(3000) // 3
    promised = fitted(X, max_rows_per_person=3)
    enforced = PrivateKMeans(4, bounds=BOX, max_rows_per_person=3, random_state=0).fit(X, person=person)
    assert "promise" in str(promised.guarantee_)
    assert "promise" not in str(enforced.guarantee_)
    assert "at most 3 rows" in str(enforced.guarantee_)
    limited = PrivateKMeans(4, bounds=BOX, epsilon=20.0, random_state=0).fit(X, person=person)
    assert limited.cluster_sizes_.sum() == pytest.approx(1000, rel=0.1)


def test_seeded_fits_repeat_and_are_marked():
    """Same noise from its start each time; random_state alone never repeats a release."""
    X = blobs(1000)
    with seeded_noise(1):
        first, second = fitted(X), fitted(X)
    np.testing.assert_array_equal(first.cluster_centers_, second.cluster_centers_)
    assert str(first.guarantee_).startswith("NOT PRIVATE")
    assert repr(first.cluster_centers_).startswith("NOT PRIVATE")
    assert (fitted(X).cluster_centers_ != fitted(X).cluster_centers_).any()


def test_shuffled_rows_release_the_same_numbers():
    """With the same noise, the order of the rows changes nothing, to the last bit."""
    X = blobs(3000, 5)
    with seeded_noise(2):
        first = fitted(X)
        second = fitted(X[np.random.default_rng(0).permutation(3000)])
    np.testing.assert_array_equal(first.cluster_centers_, second.cluster_centers_)
    assert first.inertia_ == second.inertia_


def test_nothing_is_stored_that_rows_computed_bare():
    """No attribute has an entry a row, and none equals an exact statistic of the table."""
    X = blobs(777)
    model = fitted(X)
    for name, value in vars(model).items():
        assert np.shape(value)[:1] != (777,), name
        assert not np.isscalar(value) or value != 777, name


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_clusters": 0}, r"^n_clusters=0 "),
        ({"n_clusters": 2.5}, r"^n_clusters=2\.5 "),
        ({"n_clusters": 20_001}, r"^n_clusters=20001 .* at most 4096"),
        ({"n_clusters": "many"}, r"^n_clusters='many' .* 'auto'"),
        ({"epsilon": 0}, r"^epsilon=0 "),
        ({"epsilon": float("inf")}, r"^epsilon=inf "),
        ({"delta": 0}, r"^delta=0 "),
        ({"delta": 2}, r"^delta=2 "),
        ({"bounds": "data"}, r"^bounds='data' .* 'private'"),
        ({"bounds": (3, 1)}, r"^bounds of feature 0=\(3\.0, 1\.0\)"),
        ({"bounds": [[0, 0, 0], [1, 1, 1]]}, r"^bounds=<array of shape \(2, 3\)> .* \(2, 2\)"),
        ({"neighbors": "swap"}, r"^neighbors='swap' "),
        ({"max_rows_per_person": 0}, r"^max_rows_per_person=0 "),
        ({"noise": "pink"}, r"^noise='pink' "),
        ({"missing": "mean"}, r"^missing='mean' "),
        ({"outside": "wrap"}, r"^outside='wrap' "),
        ({"k_range": (5, 2)}, r"^k_range=2 "),
        ({"feature_weights": [1.0]}, r"^feature_weights=.* shape \(2,\)"),
        ({"feature_weights": [1e-140, 1e140]}, r"^feature_weights=<weights> .* factor"),
        ({"feature_weights": [1.0, -1.0]}, r"^feature_weights=.* above 0"),
    ],
)
def test_bad_parameters_are_refused(options, message):
    """Each message names the parameter and what to do."""
    with pytest.raises(InvalidArgument, match=message):
        fitted(blobs(100), **({"n_clusters": 4} | options))


@pytest.mark.parametrize(
    "X", [np.array([["61234", "b"]]), np.zeros(7), np.zeros((7, 2), dtype=complex), np.full((7, 2), None)]
)
def test_a_bad_schema_is_refused_without_a_value_or_a_count(X):
    """Text, one dimension, complex numbers and objects."""
    with pytest.raises(InvalidArgument, match=r"^X=<table") as caught:
        fitted(X)
    assert "61234" not in str(caught.value)
    assert "7" not in str(caught.value)


ODD_CELLS = ["n/a", "", None, 10**400, 1 + 2j, np.ma.masked, np.complex128(1j), object(), [1], b"\xff"]


@pytest.mark.parametrize("cell", ODD_CELLS, ids=lambda cell: type(cell).__name__)
@pytest.mark.parametrize("bounds", [BOX, "private"])
def test_no_cell_of_a_list_raises_or_warns(cell, bounds):
    """A list has no schema that one row could break: what is no number is missing."""
    rows = [["1", "2"], [3.5, 4]] * 30
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fitted([*rows, [cell, 3], [1, 2, 3], None], 2, bounds=bounds)
    assert np.isfinite(model.cluster_centers_).all()


def test_a_masked_cell_that_does_not_fit_into_a_float_is_no_warning():
    """Long doubles beyond 1e308 become infinite in silence."""
    X = np.ma.masked_array(np.full((30, 2), np.longdouble(2) ** 2000), mask=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(X, 2)


def test_no_rows_at_all_are_answered_where_the_bounds_say_how_many_columns():
    """An empty list is a table like any other."""
    assert fitted([], 2, bounds=[[0, 0, 0], [1, 1, 1]]).cluster_centers_.shape == (2, 3)


def test_too_little_memory_is_said_without_the_number_of_rows(monkeypatch):
    """An allocation that fails names its size, which is private."""

    def fails(*_, **__):
        raise MemoryError("Unable to allocate an array with shape (12345678, 4)")

    monkeypatch.setattr("huemeans.checks.table", fails)
    with pytest.raises(HuemeansError, match="memory") as caught:
        fitted(blobs(10))
    assert "12345678" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("widths", [1e-15, 1e-29])
def test_features_of_very_different_width_give_finite_summaries(widths):
    """Cells in which rounding leaves no mass of a Gaussian have means all the same."""
    rng = np.random.default_rng(0)
    scale = np.array([1.0, widths, 1.0, 1 / widths, 1.0, widths])
    model = fitted(rng.normal(size=(3000, 6)) * scale, 2, epsilon=5.0, bounds=[-9 * scale, 9 * scale])
    assert np.isfinite(model.summary_.means).all()


def test_it_is_an_estimator():
    """clone, get_params and fit_predict behave."""
    model = clone(PrivateKMeans(3, epsilon=2.0, bounds=BOX, random_state=1))
    assert model.get_params()["epsilon"] == 2.0
    X = blobs(500)
    assert model.fit_predict(X).shape == (500,)
    assert model.transform(X).shape == (500, 3)
    assert not hasattr(model, "labels_")
