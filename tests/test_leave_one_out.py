"""How far one row moves the centroids, against naive loops."""

import numpy as np
import pytest
from sklearn import datasets
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from huemeans import InvalidArgument, differences
from huemeans.leave_one_out import cluster_means, nearest


def fixed_point(X, n_clusters, seed=0):
    """Return labels and centroids at which Lloyd's algorithm stands still."""
    centers = KMeans(n_clusters, n_init=3, tol=0, random_state=seed).fit(X).cluster_centers_
    labels = None
    while True:
        found = nearest(X, centers[None])[0]
        if labels is not None and (found == labels).all():
            return labels, centers
        labels, centers = found, cluster_means(X, found, n_clusters)


def naive_refit(X, centers, row):
    """Return labels and centroids of scikit-learn's Lloyd from ``centers`` without one row."""
    rest = np.delete(X, row, axis=0)
    model = KMeans(len(centers), init=centers, n_init=1, tol=0, max_iter=1000).fit(rest)
    return model.labels_, model.cluster_centers_


def scaled(name):
    """Return a bundled table, standardized."""
    return StandardScaler().fit_transform(getattr(datasets, f"load_{name}")().data)


def test_worked_by_hand():
    """(x - c) / (n_k - 1) in the row's own block, zero elsewhere."""
    moves = differences([[0.0, 0.0], [2.0, 4.0], [4.0, 2.0], [9.0, 9.0], [11.0, 9.0]], [0, 0, 0, 1, 1],
                        [[2.0, 2.0], [10.0, 9.0]])  # fmt: skip
    expected = [[-1, -1, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, -1, 0], [0, 0, 1, 0]]
    assert moves.dense().tolist() == expected
    assert moves.norms.tolist() == [np.sqrt(2), 1, 1, 1, 1]
    assert [block.tolist() for block in moves.blocks] == [[0], [1]]
    assert moves.rows == 5


@pytest.mark.parametrize("n_clusters", [1, 3, 7])
def test_the_fixed_partition_matches_recomputed_means(n_clusters):
    """Against a loop that recomputes every mean, to 1e-12."""
    X = scaled("wine")
    labels, centers = fixed_point(X, n_clusters)
    expected = []
    for row in range(len(X)):
        kept = np.arange(len(X)) != row
        expected.append(centers - [X[kept & (labels == k)].mean(axis=0) for k in range(n_clusters)])
    moves = differences(X, labels, centers)
    np.testing.assert_allclose(np.reshape(expected, (len(X), -1)), moves.dense(), atol=1e-12)


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer"])
@pytest.mark.parametrize("n_clusters", [2, 3, 5, 8])
def test_refits_are_those_of_the_naive_loop(name, n_clusters):
    """Every refit ends with the labels and, to 1e-12, the centroids of scikit-learn's own."""
    X = scaled(name)
    labels, centers = fixed_point(X, n_clusters, seed=n_clusters)
    moves = differences(X, labels, centers, refit=True)
    for row in range(len(X)):
        naive_labels, naive_centers = naive_refit(X, centers, row)
        ours = centers - moves.whole(row)
        np.testing.assert_allclose(naive_centers, ours, atol=1e-12)
        np.testing.assert_array_equal(naive_labels, nearest(np.delete(X, row, axis=0), ours[None])[0])


def test_refits_of_the_generated_customers_are_those_of_the_naive_loop(customers):
    """The same on a table of the paper's shape, for every tenth row and for every row that moves others."""
    labels, centers = fixed_point(customers, 4)
    moves = differences(customers, labels, centers, refit=True)
    for row in sorted({*range(0, len(customers), 10), *list(moves.elsewhere)[:200]}):
        naive_labels, naive_centers = naive_refit(customers, centers, row)
        np.testing.assert_allclose(naive_centers, centers - moves.whole(row), atol=1e-12)
        mine = nearest(np.delete(customers, row, axis=0), (centers - moves.whole(row))[None])[0]
        np.testing.assert_array_equal(naive_labels, mine)


@pytest.mark.parametrize("seed", range(8))
def test_refits_of_crowded_clusters_match_too(seed):
    """Overlapping rows and many clusters, where most removals relabel others and some empty a cluster."""
    X = np.random.default_rng(seed).normal(size=(60, 2))
    labels, centers = fixed_point(X, 12, seed=seed)
    moves = differences(X, labels, centers, refit=True)
    for row in range(len(X)):
        np.testing.assert_allclose(naive_refit(X, centers, row)[1], centers - moves.whole(row), atol=1e-12)


def test_refitting_raises_the_sensitivity_of_the_papers_table(marketing):
    """Labels that move raise the largest difference beyond the fixed partition's."""
    labels, centers = fixed_point(marketing, 4)
    fixed = differences(marketing, labels, centers).norms.max()
    refit = differences(marketing, labels, centers, refit=True).norms.max()
    assert refit >= fixed


def test_a_refit_that_moves_labels_costs_more():
    """A row on the border changes side when its neighbor leaves: two blocks move, and further."""
    X = np.array([[0.0], [1.0], [2.0], [4.3], [6.0], [7.0], [8.0]])
    labels, centers = np.array([0, 0, 0, 0, 1, 1, 1]), np.array([[1.825], [7.0]])
    fixed = differences(X, labels, centers)
    refit = differences(X, labels, centers, refit=True)
    assert list(refit.elsewhere) == [6]
    np.testing.assert_allclose([[0.825], [7 - 17.3 / 3]], refit.whole(6))
    np.testing.assert_array_equal(fixed.norms[:6], refit.norms[:6])
    assert refit.norms[6] > 2.5 * fixed.norms[6]


def test_blocks_join_where_a_row_moves_several_centroids():
    """Groups are closed: no row's difference crosses from one into another, and within() loses nothing."""
    X = np.random.default_rng(3).normal(size=(80, 2))
    labels, centers = fixed_point(X, 8)
    moves = differences(X, labels, centers, refit=True)
    dense = moves.dense().reshape(80, 8, 2)
    seen = np.zeros((80, 8, 2))
    for block in moves.blocks:
        rows, within = moves.within(block)
        seen[np.ix_(rows, block)] = within.reshape(len(rows), len(block), 2)
        outside = np.setdiff1d(np.arange(8), block)
        assert not dense[np.ix_(rows, outside)].any()
    np.testing.assert_array_equal(dense, seen)


def test_the_partition_is_never_dense():
    """20,000 rows, 50 clusters and 20 features are held as (n, d) and not as (n, K d)."""
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(20_000, 20)), np.arange(20_000) % 50
    moves = differences(X, labels, cluster_means(X, labels, 50))
    assert moves.own.shape == (20_000, 20)
    assert moves.within([7])[1].shape == (400, 20)


def test_a_single_row_cannot_be_hidden():
    """With a fixed partition it is an error that names no row; refitting moves the emptied cluster on."""
    X = np.array([[0.0], [1.0], [2.9], [123.25]])
    labels, centers = np.array([0, 0, 0, 1]), np.array([[1.3], [123.25]])
    with pytest.raises(
        InvalidArgument, match=r"at least two rows in every cluster.*Use fewer clusters"
    ) as caught:
        differences(X, labels, centers)
    assert "123" not in str(caught.value)
    assert " 3" not in str(caught.value)
    refit = differences(X, labels, centers, refit=True)
    assert refit.norms[3] > 100
    np.testing.assert_allclose(naive_refit(X, centers, 3)[1], centers - refit.whole(3))


def test_refitting_needs_a_strict_fixed_point():
    """Centroids of an early stop are refused with the remedy."""
    X = scaled("breast_cancer")
    early = KMeans(5, n_init=1, max_iter=1, random_state=0, init=X[:5])
    early.fit(X)
    with pytest.raises(InvalidArgument, match=r"strict fixed point.*tol=0"):
        differences(X, early.labels_, early.cluster_centers_, refit=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": [[np.nan], [1.0]]}, r"^X=<array in 2 dimensions> .* finite"),
        ({"X": [1.0, 2.0]}, r"^X=<array in 1 dimensions>"),
        ({"centers": [[1.0, 2.0]]}, r"^centers=<array of shape \(1, 2\)> .* \(K, 1\)"),
        ({"labels": [0.0, 0.0, 1.0, 1.0]}, r"^labels=.* whole number from 0 to 1"),
        ({"labels": [0, 0, 1]}, r"^labels="),
        ({"labels": [0, 0, 1, 2]}, r"^labels="),
        ({"labels": [0, 0, 0, 0]}, r"at least one row in every cluster"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    """Each message names the argument and quotes no row."""
    good = {"X": [[0.0], [1.0], [5.0], [7.0]], "labels": [0, 0, 1, 1], "centers": [[0.5], [6.0]]}
    with pytest.raises(InvalidArgument, match=message):
        differences(**(good | arguments))


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e7])
def test_data_far_from_zero_are_refitted_right(offset):
    """A table moved by a million deviations has the differences of the table at the origin."""
    moved = np.random.default_rng(1046).normal(size=(60, 2)) + offset
    near = moved - offset  # exact
    labels, centers = fixed_point(near, 5)
    expected = differences(near, labels, centers, refit=True).dense()
    found = differences(moved, labels, cluster_means(moved, labels, 5), refit=True).dense()
    np.testing.assert_allclose(expected, found, atol=1e-7 * max(1.0, offset / 1e6))


def test_centers_that_are_not_the_means_are_refused():
    """A wrong center would make the true movement vanish: never a zero difference."""
    with pytest.raises(InvalidArgument, match="the mean of each cluster's rows"):
        differences([[1.0], [1.0], [4.0], [5.0]], [0, 0, 1, 1], [[1.0], [5.0]])


def test_as_many_clusters_as_rows_cannot_be_refitted():
    """Without a row there would be fewer rows than clusters: an error, not an index out of bounds."""
    with pytest.raises(InvalidArgument, match="more rows than clusters"):
        differences([[1.0], [5.0]], [0, 1], [[1.0], [5.0]], refit=True)
