"""PrivateKMeans: K-means centroids under (epsilon, delta)-differential privacy, end to end."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from huemeans import checks, kernels, learned_bounds
from huemeans.budget import Accountant
from huemeans.clip_shape import colored_clip, white_clip
from huemeans.description import Figures, Settings, release_content
from huemeans.distributed import Distributed, Gridded
from huemeans.domain import Domain
from huemeans.entropy import open_source
from huemeans.errors import HuemeansError
from huemeans.fold import Assignment
from huemeans.frames import plain
from huemeans.guarantee import Guarantee, Neighbors, PrivacyUnit
from huemeans.inputs import source_of
from huemeans.lattice import MOST_FEATURES
from huemeans.ledger import Cost, Entry, Ledger
from huemeans.mechanism import Mechanism
from huemeans.noise import marked
from huemeans.persons import limited_rows
from huemeans.pipeline import Fit, Released
from huemeans.planning import BOUNDS_SHARE, allowance
from huemeans.release import Release
from huemeans.settings import check_parameters, check_person, lengths_of, metric_of, weights_of
from huemeans.spool import LazyTable, Spool
from huemeans.uncertainty import ConfidenceSet, label_draws, ratio_covariance, separation_p_values

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_BLOCK: Final = 2**16
_TOO_LARGE: Final = (
    "the fit needs more memory, or more room for temporary files, than there is: use a larger machine, set "
    "TMPDIR, or take fewer features."
)


@dataclass(frozen=True)
class SpentBudget:
    """How the budget was spent: the Gaussian-DP mu of each part, squares adding up to the square of mu."""

    mu: float
    parts: Mapping[str, float]
    """What was never needed stands under ``"unspent"``."""


@dataclass(frozen=True, eq=False)
class PrivateSummary:
    """The private summary: a histogram whose cells adapt to where rows are, in raw units."""

    counts: Floats
    """(m,): noisy numbers of rows."""

    means: Floats
    """(m, d): noisy means, shrunk towards the middles of their cells."""

    elbow: Mapping[int, float]
    """The K-means loss of the summary for each K tried, where K was chosen on it; differences count."""


class PrivateKMeans(ClusterMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """K-means under (epsilon, delta)-differential privacy for every two neighboring tables.

    Parameters
    ----------
    n_clusters : int or "auto"
        The number of clusters; "auto" chooses it in ``k_range`` by the elbow of the private summary, at no
        further cost.
    epsilon, delta : float
        The privacy of the whole fit: bounds, starts, iterations, sizes, loss and choice of K included.
    bounds : "private", pair, array of shape (2, n_features), or mapping by feature name
        Public bounds in raw units, which must not be read off the rows; or bounds learned with a part of
        the budget.
    neighbors : {"add-remove", "replace-one"}
        How neighboring tables differ.
    max_rows_per_person : int
        How many rows one person has at most.  It is a promise of the holder, unless ``fit`` is given each
        row's person: then it is enforced.
    scale : {"raw", "bounds"}
        What distance is measured in: raw units, or widths of the bounds, which makes features of different
        units comparable.
    feature_weights : array-like of shape (n_features,) or mapping by feature name, optional
        How much the squared error of each feature matters: what matters more is noised less.
    noise : {"colored", "white"}
        The shape of clip regions and noise; white is for comparison.
    missing, outside
        What becomes of missing values and of values beyond the bounds, as in ``Domain``.
    k_range : pair of int
        The smallest and largest K for ``n_clusters="auto"``.
    random_state : int, RandomState or None
        Seeds the starts of K-means on the private summary, never the noise.
    ledger : path or Ledger, optional
        Where the budget of the data set is kept.  The fit is entered before it looks at a row, and refused
        if all releases together would pass the budget.
    dataset : str, optional
        Whose budget in the ledger is spent.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        In raw units, whatever the scale; the largest cluster first.
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Noisy numbers of rows.
    inertia_ : float
        A noisy sum of squared distances to the nearest centroid, each row's clipped at a learned cap.
    noise_covariance_ : ndarray of shape (n_clusters, n_features, n_features)
        Of each centroid's error, with the noise of its count; NaN where the count is not known well enough.
    plan_ : SpentBudget
    summary_ : PrivateSummary
    bounds_ : ndarray of shape (2, n_features)
        The public or learned bounds.
    guarantee_ : Guarantee
    release_ : Release
        All of it as one document, to be written, read, checked and shown.

    Notes
    -----
    Privacy.  Unit and neighbors: as said by ``guarantee_.unit``.  Public: the parameters, the schema, the
    bounds if given.  Every number is an exact integer sum of rows, each of bounded length, plus discrete
    Gaussian noise; the parts compose as Gaussian differential privacy and are charged before they are drawn.
    Not covered: running time and memory; a second fit, which is a second release; ``predict``,
    ``fit_predict``, ``transform`` and ``score`` on the rows themselves, which are for the holder.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 2)) + np.repeat([[0, 0], [9, 0], [0, 9]], 1000, axis=0)
    >>> model = PrivateKMeans(3, epsilon=1.0, bounds=(-10, 20), random_state=0).fit(X)
    >>> print(model.guarantee_)  # doctest: +NORMALIZE_WHITESPACE
    (epsilon=1, delta=1e-06)-differential privacy for every two tables that differ by
    one row, added or removed.
    >>> bool(np.abs(np.sort(model.cluster_centers_.sum(axis=1)) - [0, 9, 9]).max() < 1)
    True
    """

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 8,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: Any = "private",
        neighbors: Neighbors = "add-remove",
        max_rows_per_person: int = 1,
        scale: Literal["raw", "bounds"] = "raw",
        feature_weights: Any = None,
        noise: Literal["colored", "white"] = "colored",
        missing: Any = "midpoint",
        outside: Literal["clip", "drop"] = "clip",
        k_range: tuple[int, int] = (2, 12),
        random_state: int | np.random.RandomState | None = None,
        ledger: Ledger | str | Path | None = None,
        dataset: str | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.neighbors = neighbors
        self.max_rows_per_person = max_rows_per_person
        self.scale = scale
        self.feature_weights = feature_weights
        self.noise = noise
        self.missing = missing
        self.outside = outside
        self.k_range = k_range
        self.random_state = random_state
        self.ledger = ledger
        self.dataset = dataset

    def fit(self, X: Any, y: object = None, *, person: ArrayLike | None = None) -> Self:
        """Fit to rows; ``person`` says whose each row is, and enforces ``max_rows_per_person``.

        ``X`` is an array, a frame, an Arrow table or dataset, a list of rows, the path of a Parquet, Arrow or
        CSV file or of a folder of Parquet files, ``open_table(path)``, or a Dask or Spark table.  A file or
        dataset is read after the budget is entered and need not fit into memory; a Dask or Spark table stays
        where it is, and each pass runs as one job there.

        A person with more rows keeps those that come first in a fixed order of their content; a row without
        a person (None, NaN) is left out.  An error has no traceback into the fit, whose frames hold rows.
        """
        del y
        kernels.ready()
        check_parameters(self)
        failure: Exception | None = None
        try:
            source = source_of(X)
            self._fit(self._table(X, reset=True) if source is None else source, person)
        except (MemoryError, OSError):  # its message has the number of rows
            failure = HuemeansError(_TOO_LARGE)
        except Exception as error:  # noqa: BLE001  # raised again below, out of reach of the frames
            failure = error.with_traceback(None)
            failure.__context__ = None
        if failure is not None:
            raise failure
        return self

    def _fit(self, source: Floats | LazyTable | Distributed, person: ArrayLike | None) -> None:
        width = source.shape[1] if isinstance(source, np.ndarray) else self._remember(source)
        if width > MOST_FEATURES:
            checks.refuse(
                "X", "<table>", f"at most {MOST_FEATURES} features", "Leave out what does not matter"
            )
        most = int(self.k_range[1] if self.n_clusters == "auto" else self.n_clusters)
        whole, caps = allowance(self.epsilon, self.delta, width, most, learns_bounds=self._learns_bounds)
        public = self._public_domain(width)
        weights = weights_of(self.feature_weights, self._names or [f"x{j}" for j in range(width)])
        bits = open_source()
        enforced = source.unit is not None if isinstance(source, LazyTable) else person is not None
        check_person(source, person)
        guarantee = self._guarantee(whole, enforced=enforced, seeded=bits.seeded)
        entry = self._entered(Cost(Fraction(whole) ** 2, caps), guarantee)
        table = self._rows_of(source, person)
        accountant = Accountant(Fraction(whole / self.max_rows_per_person) ** 2, caps)
        mechanism = Mechanism(accountant, bits, self.neighbors)
        domain, remaining = self._domain_for(table, mechanism) if public is None else (public, Fraction(1))
        metric = metric_of(domain, self.scale)
        clip = partial(colored_clip if self.noise == "colored" else white_clip, weights=weights)
        seed = check_random_state(self.random_state).randint(2**31)
        fit = Fit(_gridded(domain, table), mechanism, metric, clip, np.random.default_rng(seed), remaining)
        k_range = (int(self.k_range[0]), most) if self.n_clusters == "auto" else None
        released = fit.run(most, k_range)
        self._publish(released, domain, metric, mechanism)
        self.guarantee_ = guarantee
        settings = Settings(
            self.noise, self.scale, k_range, self.missing, self.outside, self._learns_bounds, weights
        )
        self._content = release_content(released, self._figures(), domain, settings, guarantee, caps, entry)

    def _rows_of(
        self, source: Floats | LazyTable | Distributed, person: ArrayLike | None
    ) -> Floats | Spool | Distributed:
        """Return the rows of which no person has too many."""
        if isinstance(source, Distributed):
            return source
        table, people = source.load() if isinstance(source, LazyTable) else (source, person)
        return table if people is None else limited_rows(table[:], people, self.max_rows_per_person)

    def _guarantee(self, mu: float, *, enforced: bool, seeded: bool) -> Guarantee:
        promised = self.max_rows_per_person > 1 and not enforced
        unit = PrivacyUnit(self.neighbors, self.max_rows_per_person)
        fixed = (PROMISE,) if promised else ()
        return Guarantee("dp", self.epsilon, self.delta, unit, mu=mu, fixed=fixed, seeded=seeded)

    def _entered(self, cost: Cost, guarantee: Guarantee) -> Entry | None:
        """Spend the budget of the data set, if it has a ledger, before a row is looked at."""
        if self.ledger is None:
            return None
        if guarantee.seeded:
            checks.refuse(
                "ledger", repr(str(self.ledger)), "no ledger for seeded noise", "It protects nobody"
            )
        ledger = self.ledger if isinstance(self.ledger, Ledger) else Ledger(self.ledger)
        if self.dataset is None:
            checks.refuse("dataset", "None", "the name of a data set with a ledger", "Say whose budget it is")
        body = {"epsilon": float(self.epsilon), "delta": float(self.delta), "method": type(self).__name__}
        return ledger.reserve(self.dataset, cost, guarantee.unit, body)

    def _figures(self) -> Figures:
        """Return what is published, of the attributes."""
        return Figures(
            np.asarray(self.cluster_centers_),
            np.asarray(self.cluster_sizes_),
            np.asarray(self.noise_covariance_),
            self.inertia_,
            np.asarray(self.summary_.counts),
            np.asarray(self.summary_.means),
            self.plan_.mu,
            dict(self.plan_.parts),
        )

    def _publish(self, released: Released, domain: Domain, metric: Floats, mechanism: Mechanism) -> None:
        """Turn released numbers into attributes, in raw units."""
        accountant, bits = mechanism.accountant, mechanism.bits
        clusters, step = released.clusters, domain.step
        self._domain, self._metric, self._clusters = domain, metric, clusters
        unit = float(lengths_of(domain, self.scale)[0] * step[0] / metric[0]) ** 2
        self.bounds_ = marked(np.stack([domain.lower, domain.upper]), bits)
        self.cluster_centers_ = marked(domain.to_raw(clusters.centers), bits)
        self.cluster_sizes_ = marked(np.maximum(clusters.counts, 0.0), bits)
        self.inertia_ = released.loss * unit * released.rows
        covariance = ratio_covariance(
            clusters.sums * step,
            clusters.counts,
            clusters.sum_covariance * step * step[:, None],
            clusters.count_noise**2,
        )
        self.noise_covariance_ = marked(covariance, bits)
        parts = dict(accountant.parts)
        parts["unspent"] = accountant.cap_squared - accountant.mu_squared
        roots = {name: float(np.sqrt(float(square))) for name, square in parts.items()}
        self.plan_ = SpentBudget(float(np.sqrt(float(accountant.cap_squared))), roots)
        leaves, box = released.leaves, released.box
        about = leaves.expected() @ box.directions + leaves.offsets
        means = domain.to_raw(np.clip(about / metric + box.center, -(2.0**19), 2.0**19))
        self.summary_ = PrivateSummary(marked(leaves.counts, bits), marked(means, bits), released.elbow)

    @property
    def release_(self) -> Release:
        """All that is published, as one document, checked as a reader would."""
        check_is_fitted(self, "_content")
        return Release.from_document(self._content)

    def predict(self, X: ArrayLike) -> Integers:
        """Return the nearest released centroid of each row: for the holder, not covered by the guarantee."""
        check_is_fitted(self)
        grid, _ = self._domain.to_grid(self._table(X, reset=False))
        return Assignment(self._clusters.centers, self._metric).all_labels(grid)

    def fit_predict(self, X: ArrayLike, y: object = None, **fit_parameters: Any) -> Integers:
        """Fit, and return the nearest released centroid of each row: for the holder, not for a release."""
        return self.fit(X, y, **fit_parameters).predict(X)

    def transform(self, X: ArrayLike) -> Floats:
        """Return the distance of each row to each released centroid: for the holder."""
        check_is_fitted(self)
        grid, _ = self._domain.to_grid(self._table(X, reset=False))
        rows, lengths = self._domain.to_raw(grid), lengths_of(self._domain, self.scale)
        apart = [(rows - center) * lengths for center in self.cluster_centers_]
        return np.stack([np.linalg.norm(offsets, axis=1) for offsets in apart], axis=1)

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Return minus the sum of squared distances to the nearest centroid: for the holder, not private."""
        del y
        return -float((self.transform(X).min(axis=1) ** 2).sum())

    def confidence_ellipsoids(self, level: float = 0.95) -> list[ConfidenceSet]:
        """Return for each cluster the set that holds the clipped mean of its rows at this level."""
        check_is_fitted(self)
        checks.number("level", level, above=0, expected="a number between 0 and 1", remedy="Try 0.95")
        if level >= 1:
            checks.refuse("level", repr(level), "a number between 0 and 1", "Try 0.95")
        clusters, step = self._clusters, self._domain.step
        covariances = clusters.sum_covariance * step * step[:, None]
        references = self._domain.to_raw(clusters.references)
        return [
            ConfidenceSet(
                reference, sum_ * step, float(count), covariance, clusters.count_noise**2, float(level)
            )
            for reference, sum_, count, covariance in zip(
                references, clusters.sums, clusters.counts, covariances, strict=True
            )
        ]

    def separation(self) -> Floats:
        """Return, for each pair, the chance that noise alone would part two equal clusters this far.

        Small values mean clusters that are really apart; NaN that a size is not known well enough to say.
        """
        check_is_fitted(self)
        return separation_p_values(self.cluster_centers_, self.noise_covariance_)

    def relabel_probability(self, X: ArrayLike, *, draws: int = 200, random_state: int | None = 0) -> Floats:
        """Return each row's chance of another label under other noise: for the holder."""
        labels = self.predict(X)
        grid, _ = self._domain.to_grid(self._table(X, reset=False))
        rng = np.random.default_rng(random_state)
        moved = label_draws(self.cluster_centers_, self.noise_covariance_, draws, rng)
        changed = np.zeros(len(labels))
        for centers in moved:
            placed = (centers - self._domain.middle) / self._domain.step
            changed += Assignment(placed, self._metric).all_labels(grid) != labels
        return changed / draws

    def _table(self, X: ArrayLike, *, reset: bool) -> Floats:
        """Return rows as numbers, and check or remember the schema."""
        table = checks.table("X", plain(X), width=self._declared_width() if reset else self.n_features_in_)
        validate_data(self, X if hasattr(X, "columns") else table, reset=reset, skip_check_array=True)
        return table

    def _remember(self, source: LazyTable | Distributed) -> int:
        """Remember the schema of a table that is not read yet; return its width."""
        if source.names is not None:
            self.feature_names_in_ = np.array(source.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_  # of an earlier fit
        self.n_features_in_ = int(source.shape[1])
        return self.n_features_in_

    def _declared_width(self) -> int | None:
        """Return of how many features the bounds speak, if they say so."""
        if isinstance(self.bounds, Mapping):
            return len(self.bounds)
        shape = checks.any_array("bounds", self.bounds).shape
        return int(shape[1]) if len(shape) == 2 else None  # noqa: PLR2004

    @property
    def _learns_bounds(self) -> bool:
        return isinstance(self.bounds, str)

    @property
    def _names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def _public_domain(self, width: int) -> Domain | None:
        """Return the domain if it is public, after checking it."""
        if self._learns_bounds:
            return None
        domain = Domain.from_bounds(
            self.bounds, n_features=width, names=self._names, missing=self.missing, outside=self.outside
        )
        metric_of(domain, self.scale)
        return domain

    def _domain_for(
        self, table: Floats | Spool | Distributed, mechanism: Mechanism
    ) -> tuple[Domain, Fraction]:
        """Return a domain with learned bounds, and what is left of mu^2 after learning them."""
        low, high = learned_bounds.learn_bounds(table, mechanism, mechanism.share(BOUNDS_SHARE))
        accountant = mechanism.accountant
        domain = Domain(low, high, names=self._names, missing=self.missing, outside=self.outside)
        return domain, 1 - accountant.mu_squared / accountant.cap_squared


def _gridded(domain: Domain, table: Floats | Spool | Distributed) -> NDArray[np.int32] | Spool | Gridded:
    """Return the rows that the public policy keeps, on the grid; large tables stay out of memory."""
    if isinstance(table, Distributed):
        return Gridded(table, domain)
    if isinstance(table, np.ndarray):
        grid, kept = domain.to_grid(table)
        return grid if kept.all() else grid[kept]
    rows = Spool(table.shape[1], np.int32)
    for start in range(0, len(table), _BLOCK):
        grid, kept = domain.to_grid(table[start : start + _BLOCK])
        rows.append(grid[kept])
    return rows


PROMISE: Final = "the holder's promise that no person has more rows than said"
