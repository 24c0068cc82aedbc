"""How far one row moves the centroids: c(X) - c(X') for every row, X' being X without it.

With the partition held fixed, removing row p of cluster k moves centroid k by (x_p - c_k) / (n_k - 1) and
nothing else.  With refitting, Lloyd's algorithm runs from c(X) on X' to its next fixed point; other rows
may change cluster, and other centroids move.

All n refits are run at once.  A row keeps its label as long as its margin (distance to the second nearest
centroid minus distance to its own) exceeds what the centroids have moved, so only the rows with the
smallest margins are looked at, for all refits together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from huemeans import checks
from huemeans.errors import InvalidArgument

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

_MOST_ROUNDS: Final = 1000
_BATCH: Final = 2**22
_FIXED_POINT: Final = 1e-9  # of the spread of the rows


@dataclass(frozen=True, eq=False)
class Differences:
    """c(X) - c(X') for every row, stored by block: most rows move one centroid only.

    These are functions of the private rows, for the eyes of the data holder.
    """

    own: Floats
    """(n, d): how the removal of each row moves the centroid of its own cluster."""

    labels: Indices
    """(n,): the cluster of each row."""

    n_clusters: int

    elsewhere: Mapping[int, Floats] = field(default_factory=dict)
    """For the rows whose removal moves other centroids too: the whole (K, d) difference."""

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.own)

    @property
    def norms(self) -> Floats:
        """(n,): the Euclidean length of each difference over all centroids."""
        lengths = np.linalg.norm(self.own, axis=1)
        for row, whole in self.elsewhere.items():
            lengths[row] = np.linalg.norm(whole)
        return np.asarray(lengths)

    @property
    def blocks(self) -> list[Indices]:
        """Centroids that move together: groups that no single row connects to another group.

        With the partition held fixed each centroid is a group of its own.
        """
        group = np.arange(self.n_clusters)
        for whole in self.elsewhere.values():
            touched = np.unique(group[np.flatnonzero(whole.any(axis=1))])
            group[np.isin(group, touched)] = touched[:1]
        return [np.flatnonzero(group == first) for first in np.unique(group)]

    def within(self, block: ArrayLike) -> tuple[Indices, Floats]:
        """Return the rows that move centroids of ``block``, and how, (m, len(block) * d)."""
        members = np.atleast_1d(np.asarray(block, dtype=np.intp))
        inside = np.isin(self.labels, members)
        inside[[row for row, whole in self.elsewhere.items() if whole[members].any()]] = True
        rows = np.flatnonzero(inside)
        width = self.own.shape[1]
        result = np.zeros((len(rows), len(members), width))
        place = np.full(self.n_clusters, -1)
        place[members] = np.arange(len(members))
        simple = place[self.labels[rows]] >= 0
        result[np.flatnonzero(simple), place[self.labels[rows[simple]]]] = self.own[rows[simple]]
        for at, row in enumerate(rows.tolist()):
            if row in self.elsewhere:
                result[at] = self.elsewhere[row][members]
        return rows, result.reshape(len(rows), -1)

    def whole(self, row: int) -> Floats:
        """Return the difference of one row, (K, d)."""
        if row in self.elsewhere:
            return self.elsewhere[row]
        result = np.zeros((self.n_clusters, self.own.shape[1]))
        result[self.labels[row]] = self.own[row]
        return result

    def dense(self) -> Floats:
        """Return everything as (n, K * d), in row order, centroid after centroid: for small cases."""
        result = np.zeros((self.rows, self.n_clusters, self.own.shape[1]))
        result[np.arange(self.rows), self.labels] = self.own
        for row, whole in self.elsewhere.items():
            result[row] = whole
        return result.reshape(self.rows, -1)


def differences(X: ArrayLike, labels: ArrayLike, centers: ArrayLike, *, refit: bool = False) -> Differences:
    """Return c(X) - c(X') for the removal of each row.

    Parameters
    ----------
    X : array-like of shape (n, d)
        The rows.
    labels : array-like of shape (n,)
        The cluster of each row.
    centers : array-like of shape (K, d)
        The mean of each cluster.
    refit : bool
        Hold the partition fixed (False), or run Lloyd's algorithm from ``centers`` on every X' until no
        label changes (True).  Then ``centers`` must be a strict fixed point of it on X (tol 0), of several
        centroids at the same distance the first is the nearest, and an emptied cluster moves to the row
        that lies farthest from its centroid, as in scikit-learn.

    Raises
    ------
    InvalidArgument
        If a cluster has a single row and the partition is held fixed: its centroid *is* that row, and no
        finite noise hides it.

    Examples
    --------
    >>> moves = differences([[0.0], [1.0], [5.0], [7.0]], [0, 0, 1, 1], [[0.5], [6.0]])
    >>> moves.dense().tolist()
    [[-0.5, 0.0], [0.5, 0.0], [0.0, -1.0], [0.0, 1.0]]
    """
    rows, label, means = _inputs(X, labels, centers)
    sizes = np.bincount(label, minlength=len(means))
    _require_means(rows, label, means)
    if refit:
        _require_fixed_point(rows, label, means)
        if len(rows) <= len(means):
            checks.refuse("X", "<table>", "more rows than clusters", "Use fewer clusters")
        return _refitted(rows, label, means, sizes)
    if (sizes == 1).any():
        raise InvalidArgument(
            "labels=<array> is not valid: expected at least two rows in every cluster, for the centroid of "
            "a single row is that row and cannot be hidden. Use fewer clusters, or refit=True, where an "
            "emptied cluster moves on."
        )
    return Differences((rows - means[label]) / (sizes[label] - 1)[:, None], label, len(means))


def _refitted(X: Floats, labels: Indices, centers: Floats, sizes: Indices) -> Differences:
    """Run all n refits, the far-moving ones in small batches, since they look at many rows."""
    alone = sizes[labels] == 1
    own = np.where(alone[:, None], 0.0, (X - centers[labels]) / np.maximum(sizes[labels] - 1, 1)[:, None])
    elsewhere = {int(row): centers - _refit_alone(X, centers, int(row)) for row in np.flatnonzero(alone)}
    base = _Base(X, labels, centers, sizes)
    moved = np.linalg.norm(own, axis=1)
    pending = np.flatnonzero(~alone & (moved >= base.least_margin[labels]))
    pending = pending[np.argsort(-moved[pending])]
    while pending.size:
        looked_at = len(base.within_reach(2 * moved[pending[0]])) + 1
        size = max(1, _BATCH // (looked_at * centers.size))
        elsewhere |= base.lloyd_without(pending[:size])
        pending = pending[size:]
    return Differences(own, labels, len(centers), elsewhere)


class _Base:
    """The fixed point c(X) from which every refit starts, with its margins."""

    def __init__(self, X: Floats, labels: Indices, centers: Floats, sizes: Indices) -> None:
        self.X, self.labels, self.centers, self.sizes = X, labels, centers, sizes
        distances = _distances(X, centers)
        rows = np.arange(len(X))
        excess = distances - distances[rows, labels][:, None]
        excess[rows, labels] = np.inf
        margin = excess.min(axis=1)
        self.by_margin = np.argsort(margin)
        self.margins = margin[self.by_margin]
        leaving = [margin[labels == k].min() for k in range(len(centers))]
        self.least_margin = np.minimum(excess.min(axis=0), leaving)

    def within_reach(self, reach: float) -> Indices:
        """Return the rows whose label could change while no two centroids move by more than ``reach``."""
        return self.by_margin[: int(np.searchsorted(self.margins, reach, side="right"))]

    def lloyd_without(self, removed: Indices) -> dict[int, Floats]:
        """Run Lloyd without each of ``removed`` in turn, all at once, until no label of any of them changes.

        ``current[r]`` holds the labels of the candidate rows in refit r.  Returns the whole difference of
        each refit in which another row ends up with another label.
        """
        results: dict[int, Floats] = {}
        candidates = np.empty(0, dtype=np.intp)
        current = np.empty((len(removed), 0), dtype=np.intp)
        for _ in range(_MOST_ROUNDS):
            moves, emptied = self._moves(removed, candidates, current)
            for row in removed[emptied]:
                results[int(row)] = self.centers - _refit_alone(self.X, self.centers, int(row))
            removed, current, moves = removed[~emptied], current[~emptied], moves[~emptied]
            if not removed.size:
                return results
            wide = self.within_reach(2 * float(np.linalg.norm(moves, axis=2).max()))
            if len(wide) > len(candidates):  # sorted by margin: the old candidates come first
                grown = np.repeat(self.labels[wide][None], len(removed), axis=0)
                grown[:, : len(candidates)] = current
                candidates, current = wide, grown
            found = nearest(self.X[candidates], self.centers + moves)
            found = np.where(candidates[None] == removed[:, None], self.labels[candidates][None], found)
            settled = (found == current).all(axis=1)
            changed = (found != self.labels[candidates][None]).any(axis=1)
            for at in np.flatnonzero(settled & changed):
                results[int(removed[at])] = -moves[at]
            removed, current = removed[~settled], found[~settled]
        raise InvalidArgument(
            f"centers=<array> is not valid: expected refits that settle within {_MOST_ROUNDS} rounds of "
            "Lloyd's algorithm. Scale the rows so that no two centroids coincide."
        )

    def _moves(
        self, removed: Indices, candidates: Indices, current: Indices
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Return how far each refit's centroids lie from c(X), and which refits emptied one.

        With y = x - c_k, the mean of a cluster moves by (sum of y that joined - sum of y that left) / count.
        """
        refits = np.arange(len(removed))
        counts = np.repeat(self.sizes[None], len(removed), axis=0)
        total = np.zeros((len(removed), *self.centers.shape))
        refit, at = np.nonzero(current != self.labels[candidates][None])
        row, new = candidates[at], current[refit, at]
        leaving = np.concatenate([refits, refit]), np.concatenate([removed, row])
        old = self.labels[leaving[1]]
        np.add.at(counts, (leaving[0], old), -1)
        np.add.at(total, (leaving[0], old), self.centers[old] - self.X[leaving[1]])
        np.add.at(counts, (refit, new), 1)
        np.add.at(total, (refit, new), self.X[row] - self.centers[new])
        return total / np.maximum(counts, 1)[:, :, None], (counts == 0).any(axis=1)


def nearest(rows: Floats, centers: Floats) -> Indices:
    """Return (m, n): for each of m sets of centroids, (m, K, d), the one nearest to each row."""
    origin = centers.mean(axis=(0, 1))  # far from zero, the squares would drown the distances
    placed, centered = centers - origin, rows - origin
    scores = np.einsum("rkd,rkd->rk", placed, placed)[:, :, None] - 2 * (placed @ centered.T)
    return np.asarray(scores.argmin(axis=1))


def _distances(X: Floats, centers: Floats) -> Floats:
    return np.stack([np.linalg.norm(X - center, axis=1) for center in centers], axis=1)


def _refit_alone(X: Floats, centers: Floats, row: int) -> Floats:
    """Run one refit the plain way, for the rare row whose removal empties a cluster."""
    rest = np.delete(X, row, axis=0)
    labels = np.full(len(rest), -1)
    means = centers
    for _ in range(_MOST_ROUNDS):
        distances = _distances(rest, means)
        found = distances.argmin(axis=1)
        if (found == labels).all():
            break
        labels = found
        for empty in np.flatnonzero(np.bincount(labels, minlength=len(means)) == 0):
            own = distances[np.arange(len(rest)), labels].copy()
            own[np.bincount(labels, minlength=len(means))[labels] == 1] = -1  # leave no other cluster empty
            labels[own.argmax()] = empty
        means = cluster_means(rest, labels, len(means))
    return means


def _require_fixed_point(X: Floats, labels: Indices, centers: Floats) -> None:
    spread = np.abs(X - X.mean(axis=0)).max() + np.abs(X).max() * 1e-6
    distances = _distances(X, centers)
    astray = distances[np.arange(len(X)), labels] > distances.min(axis=1) + _FIXED_POINT * spread
    if astray.any():
        raise InvalidArgument(
            "centers=<array> is not valid: expected a strict fixed point of Lloyd's algorithm (each row with "
            "its nearest centroid, each centroid the mean of its rows). Run K-means with tol=0 until no "
            "label changes."
        )


def _require_means(X: Floats, labels: Indices, centers: Floats) -> None:
    spread = np.abs(X - X.mean(axis=0)).max() + np.abs(X).max() * 1e-6
    if np.abs(cluster_means(X, labels, len(centers)) - centers).max() > _FIXED_POINT * spread:
        raise InvalidArgument(
            "centers=<array> is not valid: expected the mean of each cluster's rows, as at a strict fixed "
            "point of Lloyd's algorithm. Run K-means with tol=0 until no label changes."
        )


def cluster_means(X: Floats, labels: Indices, n_clusters: int) -> Floats:
    """Return the mean of each cluster, (K, d), exact where a feature is constant in a cluster."""
    members = [X[labels == k] for k in range(n_clusters)]
    return np.stack([rows[0] + (rows - rows[0]).mean(axis=0) for rows in members])


def _inputs(X: ArrayLike, labels: ArrayLike, centers: ArrayLike) -> tuple[Floats, Indices, Floats]:
    rows, means = checks.real_array("X", X), checks.real_array("centers", centers)
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():  # noqa: PLR2004
        checks.refuse("X", f"<array in {rows.ndim} dimensions>", "a finite table (n, d)", "Remove NaN first")
    if means.ndim != 2 or means.shape[1] != rows.shape[1] or not np.isfinite(means).all():  # noqa: PLR2004
        found, wanted = f"<array of shape {means.shape}>", f"finite and of shape (K, {rows.shape[1]})"
        checks.refuse("centers", found, wanted, "Pass one centroid per cluster")
    label = np.asarray(labels)
    whole = label.dtype.kind in "iu" and label.shape == (len(rows),)
    if not whole or label.min() < 0 or label.max() >= len(means):
        wanted = f"one whole number from 0 to {len(means) - 1} per row"
        checks.refuse("labels", f"<array of dtype {label.dtype}>", wanted, "Pass the labels of these rows")
    if len(np.unique(label)) < len(means):
        checks.refuse("labels", "<array>", "at least one row in every cluster", "Use fewer clusters")
    return rows, label.astype(np.intp), means
