"""TailoredKMeans: the paper's mechanism, with the optimal color and an honest statement of what it keeps."""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from huemeans import checks
from huemeans.calibrate import Notion, epsilon_at, whitened_limit
from huemeans.ellipsoid import min_trace_ellipsoid
from huemeans.entropy import open_source
from huemeans.errors import HuemeansError, InvalidArgument
from huemeans.guarantee import Guarantee, PrivacyUnit
from huemeans.leave_one_out import Differences, cluster_means, differences, nearest
from huemeans.lemma import lemma_covariance
from huemeans.noise import STEPS, ColoredGaussian, marked
from huemeans.row_risk import RecomputedRisk, epsilon_by_row, recomputed_risk

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

NOISES: Final = ("colored", "white", "lemma")
NEIGHBORS: Final = ("fixed", "refit")
CALIBRATIONS: Final = ("pdp", "dp", "paper")

NOT_COVERED: Final = (
    "adding or replacing rows",
    "K-means run afresh without a row",
    "a covariance, labels, sizes or per-row risks that are published or recomputed",
)

HOLDERS: Final = ("_held", "noise_covariance_")

_RESERVE: Final = 1e-9  # of m, for the rounding of the covariance; the lattice's own is added to it


class HolderArray(np.ndarray):
    """An exact function of the rows, for the holder: it shows its shape and no entry."""

    def __repr__(self) -> str:
        """Say what it is, and show nothing."""
        return f"<for the data holder, not part of a release: array of shape {self.shape}>"

    __str__ = __repr__


@dataclass(frozen=True, eq=False)
class HolderView:
    """What the release hides: exact functions of the rows, for the eyes of the data holder only."""

    centers: Floats
    """The true centroids, (K, d)."""

    labels: Indices
    """The cluster of each row at the true centroids."""

    sizes: Indices
    """The true cluster sizes."""

    noise_covariance: Floats
    """(K, d, d), or (K * d, K * d) with refitting."""

    row_lengths: Floats
    """The whitened length of each row's difference; infinite where no noise covers it."""

    row_epsilon: Floats
    """The epsilon that this release costs each row at the estimator's delta, the covariance held fixed."""

    lemma_factors: tuple[float, ...]
    """With ``noise="lemma"``: by what factor each block of centroids breaks its constraint, at worst."""

    gaps: tuple[float, ...]
    """With ``noise="colored"``: how far above the least the trace of each block can be, certified."""

    def summary(self) -> Mapping[str, float]:
        """Return the distribution of the per-row epsilon."""
        low, middle, high = np.quantile(self.row_epsilon, [0.05, 0.5, 0.95], method="inverted_cdf")
        return {
            "smallest": float(self.row_epsilon.min()),
            "5 %": float(low),
            "median": float(middle),
            "95 %": float(high),
            "largest": float(self.row_epsilon.max()),
        }


@dataclass(frozen=True, eq=False)
class _Design:
    """Noise designed for one table: blocks of centroids that move together, a covariance for each."""

    centers: Floats
    labels: Indices
    moves: Differences
    blocks: list[Indices]
    covariances: list[Floats]
    lemma_factors: list[float]
    gaps: list[float]

    def fits(self, table: Floats) -> bool:
        """Tell whether this is the table that the noise was designed for."""
        if table.shape != self.moves.own.shape:
            return False
        others = np.bincount(self.labels, minlength=len(self.centers))[self.labels] - 1
        expected = self.centers[self.labels] + self.moves.own * others[:, None]
        near = 1e-9 * np.abs(table - table.mean(axis=0)).max() + 1e-12 * np.abs(table).max()
        return bool((np.abs(table - expected)[others > 0] <= near).all())

    def dense(self) -> Floats:
        """Return the covariance of all centroids, (K * d, K * d)."""
        n_clusters, width = self.centers.shape
        whole = np.zeros((n_clusters * width, n_clusters * width))
        for block, covariance in zip(self.blocks, self.covariances, strict=True):
            at = (block[:, None] * width + np.arange(width)).ravel()
            whole[np.ix_(at, at)] = covariance
        return whole


class TailoredKMeans(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """K-means whose centroids are released with noise tailored to *this* table.

    The noise covers how far the removal of any one row moves the centroids, and no further: it is not
    differential privacy.  ``guarantee_`` says exactly what it is.  For publishing, use an estimator with a
    guarantee for every table.

    Parameters
    ----------
    n_clusters : int
        The number of clusters.
    epsilon, delta : float
        The privacy to keep at this table for the removal of any of its rows.
    noise : {"colored", "white", "lemma"}
        The covariance of least trace that covers every difference; one variance for all (Theorem 2 of the
        paper); or Lemma 4 of the paper as printed, for comparison: it does not keep epsilon.
    neighbors : {"fixed", "refit"}
        Without a row, the other rows keep their labels; or Lloyd's algorithm runs on from the centroids.
    calibration : {"pdp", "dp", "paper"}
        Exact probabilistic differential privacy, exact hockey-stick divergence, or the paper's constant.
    n_init, max_iter : int
        Of the K-means that chooses the partition; it then runs on until no label changes.
    random_state : int, RandomState or None
        Seeds the starts of K-means, never the noise.
    span : bool
        With ``noise="lemma"``: work in the span of the differences where they lack full rank.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The noisy centroids.
    noise_covariance_ : ndarray of shape (K, d, d), or (K * d, K * d) with refitting
        An exact function of the outermost rows: for the holder, and not part of a release, a copy or a
        pickle.
    guarantee_ : Guarantee
        What is kept, what it holds fixed and what it does not cover.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 2)) + np.repeat([[0], [9], [18]], 100, axis=0)
    >>> model = TailoredKMeans(n_clusters=3, epsilon=1.0, random_state=0).fit(X)
    >>> model.cluster_centers_.shape, bool(model.holder_view().row_epsilon.max() <= 1)
    ((3, 2), True)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        noise: Literal["colored", "white", "lemma"] = "colored",
        neighbors: Literal["fixed", "refit"] = "fixed",
        calibration: Notion = "pdp",
        n_init: int = 10,
        max_iter: int = 300,
        random_state: int | np.random.RandomState | None = None,
        span: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.noise = noise
        self.neighbors = neighbors
        self.calibration = calibration
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state
        self.span = span

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Cluster the rows, design the noise for them and release noisy centroids."""
        del y
        self._check_parameters()
        rows = self._rows(X, reset=True)
        design = self._design(rows, *self._fixed_point(rows))
        bits = open_source()
        centers = np.empty_like(design.centers)
        lengths = np.zeros(len(rows))
        worst = 0.0
        for block, covariance in zip(design.blocks, design.covariances, strict=True):
            noise = ColoredGaussian(covariance)
            value = design.centers[block].ravel()
            members, moves = design.moves.within(block)
            centers[block] = noise.release(value, moves, bits=bits).reshape(len(block), -1)
            lengths[members] = noise.sensitivity(moves)
            worst = max(worst, noise.lattice_sensitivity(value, moves))
        self.cluster_centers_ = marked(centers, bits)
        self.noise_covariance_ = self._public_shape(design).view(HolderArray)
        self.guarantee_ = self._guarantee(worst, seeded=bits.seeded)
        self._held = (design, lengths)
        return self

    def predict(self, X: ArrayLike) -> Indices:
        """Return the nearest noisy centroid of each row."""
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        return np.asarray(nearest(rows, self.cluster_centers_[None])[0])

    def fit_predict(self, X: ArrayLike, y: object = None) -> Indices:
        """Fit, and return the nearest noisy centroid of each row: for the holder, not for a release."""
        return self.fit(X, y).predict(X)

    def holder_view(self) -> HolderView:
        """Return what the release hides, for the eyes of the data holder.

        It stays in the process that fitted: a copy or a pickle of the estimator does not have it.
        """
        design, lengths = self._holder_state()
        notion: Notion = "dp" if self.calibration == "dp" else "pdp"
        return HolderView(
            centers=design.centers,
            labels=design.labels,
            sizes=np.bincount(design.labels, minlength=len(design.centers)),
            noise_covariance=self._public_shape(design),
            row_lengths=lengths,
            row_epsilon=epsilon_by_row(lengths, self.delta, notion),
            lemma_factors=tuple(design.lemma_factors),
            gaps=tuple(design.gaps),
        )

    def recomputed_risk(
        self,
        X: ArrayLike,
        rows: Iterable[int],
        *,
        samples: int = 100_000,
        random_state: int | None = None,
    ) -> list[RecomputedRisk]:
        """Return the real delta for chosen rows of the fitted table when the covariance is recomputed, too.

        Without the row the noise itself would have had another covariance; this is the figure that the
        guarantee leaves out by holding the covariance fixed.  For the holder: it is not private.
        """
        design, _ = self._holder_state()
        table = self._rows(X, reset=False)
        checks.integer("samples", samples, least=1, remedy="Say how many losses to draw")
        if not design.fits(table):
            checks.refuse("X", "<another table>", "the table that was fitted", "Pass the same rows again")
        here = design.centers.ravel(), design.dense()
        rng = np.random.default_rng(random_state)
        hint = "Count rows from 0"
        chosen = [checks.integer("rows", row, least=0, remedy=hint) for row in rows]
        if max(chosen, default=0) >= len(table):
            checks.refuse("rows", "<row number>", "positions of rows in X", hint)
        return [
            recomputed_risk(here, self._without(table, design, row), self.epsilon, samples, rng)
            for row in chosen
        ]

    def _without(self, table: Floats, design: _Design, row: int) -> tuple[Floats, Floats] | None:
        """Return centroids and covariance without one row; None if they could not be released."""
        rest, labels = np.delete(table, row, axis=0), np.delete(design.labels, row)
        centers = design.centers - design.moves.whole(row)
        if self.neighbors == "refit":
            labels = nearest(rest, centers[None])[0]
        elif np.bincount(labels, minlength=len(centers)).min() == 1:
            return None
        return centers.ravel(), self._design(rest, labels, centers).dense()

    def _design(self, rows: Floats, labels: Indices, centers: Floats) -> _Design:
        """Choose the covariance of each block of centroids that move together."""
        if self.neighbors == "fixed" and np.bincount(labels).min() == 1:
            raise InvalidArgument(
                f"n_clusters={self.n_clusters} is not valid: expected at least two rows in every cluster, "
                "for the centroid of a single row is that row and cannot be hidden. Use fewer clusters, or "
                "neighbors='refit'."
            )
        moves = differences(rows, labels, centers, refit=self.neighbors == "refit")
        limit = whitened_limit(self.epsilon, self.delta, self.calibration)
        m = limit * (1 - _RESERVE) - 2 * np.sqrt(centers.size) / STEPS
        if m < limit / 2:
            checks.refuse(
                "epsilon", repr(self.epsilon), "enough for the lattice of the noise", "Raise epsilon"
            )
        design = _Design(centers, labels, moves, moves.blocks, [], [], [])
        variance = (float(moves.norms.max()) / m) ** 2
        for block in design.blocks:
            _, points = moves.within(block)
            if self.noise == "white":
                design.covariances.append(np.eye(points.shape[1]) * variance)
            elif self.noise == "lemma":
                lemma = lemma_covariance(points, m, span=self.span)
                design.covariances.append(lemma.covariance)
                design.lemma_factors.append(lemma.factor)
            else:
                ellipsoid = min_trace_ellipsoid(points)
                design.covariances.append(ellipsoid.covariance / m**2)
                design.gaps.append(ellipsoid.gap)
        return design

    def _fixed_point(self, rows: Floats) -> tuple[Indices, Floats]:
        """Run K-means, then Lloyd's algorithm until no label changes."""
        start = KMeans(
            self.n_clusters, n_init=self.n_init, max_iter=self.max_iter, tol=0, random_state=self.random_state
        )
        if self.n_clusters > len(rows):
            checks.refuse(
                "n_clusters", repr(self.n_clusters), "at most one cluster per row", "Use fewer clusters"
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a count of distinct rows; settled below
            start.fit(rows)
        return self._settled(rows, start.cluster_centers_)

    def _settled(self, rows: Floats, centers: Floats) -> tuple[Indices, Floats]:
        labels = np.full(len(rows), -1)
        for _ in range(self.max_iter + 1):
            found = nearest(rows, centers[None])[0]
            if (found == labels).all():
                return labels, centers
            labels = found
            if len(np.unique(labels)) < self.n_clusters:
                raise InvalidArgument(
                    f"n_clusters={self.n_clusters} is not valid: expected rows in every cluster, and there "
                    "are too few different ones. Use fewer clusters."
                )
            centers = cluster_means(rows, labels, self.n_clusters)
        raise InvalidArgument(
            f"max_iter={self.max_iter} is not valid: expected enough rounds for the labels to settle. "
            "Raise it."
        )

    def _guarantee(self, worst: float, *, seeded: bool) -> Guarantee:
        """State what is kept: the declared epsilon where the noise was made for it, else the one reached.

        Discrete noise of 2^30 steps changes the loss by at most m sqrt(d) / 2^31 and no probability by more
        than 1e-15 of itself; the reserve in m pays for that.
        """
        notion: Notion = "dp" if self.calibration == "dp" else "pdp"
        limit = whitened_limit(self.epsilon, self.delta, notion)
        kept = worst <= limit and self.noise != "lemma" and self.calibration != "paper"
        starts = "the starting centroids c(X)" if self.neighbors == "refit" else "the labels"
        return Guarantee(
            notion="dp-at-table" if notion == "dp" else "pdp-at-table",
            epsilon=self.epsilon if kept else epsilon_at(worst, self.delta, notion),
            delta=self.delta,
            unit=PrivacyUnit("add-remove"),
            mu=limit if kept else worst,
            declared_epsilon=None if kept else self.epsilon,
            fixed=("the covariance of the noise", starts),
            not_covered=NOT_COVERED,
            seeded=seeded,
        )

    def _public_shape(self, design: _Design) -> Floats:
        if self.neighbors == "refit":
            return design.dense()
        return np.stack(design.covariances)

    def _holder_state(self) -> tuple[_Design, Floats]:
        check_is_fitted(self)
        if getattr(self, "_held", None) is None:
            raise HuemeansError(
                "this copy of the estimator holds the release only: the holder's view stays with the object "
                "that was fitted. Call holder_view() there, or fit again."
            )
        return self._held

    def __getstate__(self) -> Mapping[str, Any]:
        """Leave what is for the holder out of copies and pickles."""
        return {name: value for name, value in super().__getstate__().items() if name not in HOLDERS}

    def _rows(self, X: ArrayLike, *, reset: bool) -> Floats:
        """Accept a finite numeric table, by messages that hold no value of it."""
        rows = checks.table("X", X, finite=True)
        validate_data(self, X, skip_check_array=True, reset=reset)
        return np.ascontiguousarray(rows)

    def _check_parameters(self) -> None:
        checks.integer("n_clusters", self.n_clusters, least=1, remedy="Say how many clusters to make")
        checks.epsilon(self.epsilon)
        checks.delta(self.delta)
        checks.choice("noise", self.noise, NOISES)
        checks.choice("neighbors", self.neighbors, NEIGHBORS)
        checks.choice("calibration", self.calibration, CALIBRATIONS)
        checks.integer("n_init", self.n_init, least=1, remedy="Say how often to start")
        checks.integer("max_iter", self.max_iter, least=1, remedy="Say how long to iterate")
