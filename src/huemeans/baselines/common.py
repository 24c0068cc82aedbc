"""What the methods of other papers have in common here: one estimator interface, and an honest statement.

They are built for comparison. Their noise is floating-point and seeded, which no guarantee survives; what
is stated is what the method would keep with exact noise. For publishing there is ``PrivateKMeans``.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.metrics import pairwise_distances, pairwise_distances_argmin
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from huemeans import checks
from huemeans.domain import Domain

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]

N_PUBLIC: Final = "the number of rows taken for public by the plan"

_TRIES: Final = 100  # to place one center of a packing
_HALVINGS: Final = 20  # of the distance


@dataclass(frozen=True)
class Claim:
    """What a method keeps, and of what."""

    epsilon: float
    """What it really costs a person; infinite if it keeps no finite one."""

    delta: float
    neighbors: str
    """"add-remove", "replace-one", "local" for noise at each person's own end, "this table"."""

    words: str
    """The guarantee as a sentence, with what is taken for public."""


@dataclass(frozen=True, eq=False)
class Table:
    """Rows about the middle of their public box, and what else a method is told."""

    rows: Floats
    """(n, d), each within ``half`` of zero."""

    half: Floats
    """(d,): half of the widths of the public bounds."""

    rng: np.random.Generator


class Baseline(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """K-means by the method of another paper: for comparison, not for publishing.

    Parameters
    ----------
    n_clusters : int
    epsilon, delta : float
        What the method is told to keep.
    bounds : (low, high), array-like of shape (2, n_features) or mapping
        Public bounds.
    random_state : int, optional
        Seeds everything, the noise included.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    claim_ : Claim
        What the method really keeps.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: Any = (-1, 1),
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Fit to rows, moved into the bounds; what is missing counts as the middle of its bounds."""
        del y
        k = checks.integer("n_clusters", self.n_clusters, least=1, remedy="Say how many clusters")
        checks.epsilon(self.epsilon)
        checks.delta(self.delta)
        table = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        names = getattr(self, "feature_names_in_", None)
        domain = Domain.from_bounds(self.bounds, n_features=table.shape[1], names=names)
        rows = domain.to_raw(domain.to_grid(table)[0]) - domain.middle
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        half = (domain.upper - domain.lower) / 2
        centers = self._centers(Table(rows, half, rng), k)
        self.cluster_centers_ = np.clip(centers, -half, half) + domain.middle
        self.claim_ = self._claim()
        self._domain = domain
        return self

    def predict(self, X: ArrayLike) -> Labels:
        """Return the nearest centroid of each row, moved into the bounds as in ``fit``."""
        check_is_fitted(self)
        table = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        rows = self._domain.to_raw(self._domain.to_grid(table)[0])
        return nearest(rows, self.cluster_centers_)

    def fit_predict(self, X: ArrayLike, y: object = None) -> Labels:
        """Fit, and return the nearest centroid of each row."""
        return self.fit(X, y).predict(X)

    @abstractmethod
    def _centers(self, table: Table, k: int) -> Floats:
        """Return centroids (k, d) about the middle of the box."""

    @abstractmethod
    def _claim(self) -> Claim:
        """Say what was kept."""


def nearest(rows: Floats, centers: Floats) -> Labels:
    """Return the nearest center of each row."""
    return np.asarray(pairwise_distances_argmin(rows, centers))


def sums_by(labels: Labels, rows: Floats, k: int) -> tuple[Floats, Floats]:
    """Return how many rows each cluster has, (k,), and their sums, (k, d)."""
    counts = np.bincount(labels, minlength=k).astype(np.float64)
    sums = np.zeros((k, rows.shape[1]))
    np.add.at(sums, labels, rows)
    return counts, sums


def packed(half: Floats, k: int, rng: np.random.Generator) -> Floats:
    """Return k centers in the box, as far from each other and from its sides as random search finds.

    Sphere packing (Su, Cao, Li, Bertino and Jin 2016): no two nearer than twice the distance that all keep
    from the sides; the distance is halved or grown by bisection.
    """
    low, high = 0.0, float(half.min())
    best = rng.uniform(-half, half, size=(k, len(half)))
    for _ in range(_HALVINGS):
        distance = (low + high) / 2
        found = _placed(half - distance, k, 2 * distance, rng)
        if found is None:
            high = distance
        else:
            best, low = found, distance
    return best


def _placed(room: Floats, k: int, apart: float, rng: np.random.Generator) -> Floats | None:
    centers = np.empty((0, len(room)))
    while len(centers) < k:
        tried = rng.uniform(-room, room, size=(_TRIES, len(room)))
        near = pairwise_distances(tried, centers).min(axis=1) if len(centers) else np.full(_TRIES, np.inf)
        free = np.flatnonzero(near >= apart)
        if not free.size:
            return None
        centers = np.vstack([centers, tried[free[:1]]])
    return centers


def choice_probabilities(losses: Floats, epsilon: float, sensitivity: float) -> Floats:
    """Return the probabilities of the exponential mechanism: exp(-epsilon loss / (2 sensitivity)), scaled."""
    exponents = -epsilon * (losses - losses.min()) / (2 * sensitivity)
    weights = np.exp(exponents)
    return np.asarray(weights / weights.sum())
