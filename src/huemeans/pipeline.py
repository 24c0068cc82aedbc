"""One private fit, from grid rows to released centroids: count, moments, tree, leaves, start, passes, loss.

Only ``Rows.fold`` looks at rows, and only what ``Mechanism`` has noised comes back, so everything else here
is a function of released numbers, public facts and fresh randomness.  All lengths are in *metric
coordinates*: grid steps times ``metric``, in which the distance of K-means is Euclidean.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin

from huemeans.box import Box
from huemeans.clip_shape import ClipShape
from huemeans.distributed import Gridded
from huemeans.domain import GRID_HALF
from huemeans.fold import (
    MOMENT_RADIUS,
    Assignment,
    CellCounts,
    Count,
    Distances,
    LeafSums,
    Lloyd,
    Loss,
    Mean,
    MomentSums,
    State,
    fold,
)
from huemeans.lattice import MOST_ZOOM, RADIUS, ZOOM, Whitening
from huemeans.mechanism import Mechanism
from huemeans.planning import COUNT_SHARE, Plan, clipped_share, make_plan, most_nodes, split_pass
from huemeans.spool import Spool
from huemeans.starts import best_centers, with_useless_moved
from huemeans.summary import (
    Leaves,
    Moments,
    box_along,
    cell_means,
    effective_dimension,
    elbow,
    guess_clusters,
    sample,
    shrunk,
)
from huemeans.tree import Tree

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Clip = Callable[[Floats, float, float], ClipShape]

SAMPLE: Final = 20_000
_CURVE_SAMPLE: Final = 4_000
_DISTANCES: Final = 24
_LOSS_DISTANCES: Final = 40
_BEYOND_CAP: Final = 0.003  # of the rows, beyond the squared distance at which the loss is clipped
_BEYOND: Final = 0.03  # of the rows, beyond the radius to which second moments are clipped
_CLEAR: Final = 2.0  # deviations of its noise that a leaf's count must have for its mean to be measured
_REACH: Final = 2.5  # half-width of the tree's box along a learned direction, in deviations
_INSIDE: Final = 1 - 1e-9
_SPLIT: Final = 6.0  # deviations of the next level's noise that a count must stand clear to be split


@dataclass(frozen=True, eq=False)
class Clusters:
    """Noisy counts and sums about public references, with their noise: all that error bars need."""

    references: Floats
    """(K, d), grid steps."""

    counts: Floats
    count_noise: float

    sums: Floats
    """(K, d): sums of clipped offsets, grid steps."""

    sum_covariance: Floats
    """(K, d, d), of each sum."""

    centers: Floats
    """(K, d), grid steps: references moved by shrunken means, within the domain."""

    sizes: Floats
    """(K,): counts, improved by what the summary expects."""

    second: Floats
    """(d, d), metric coordinates: the released second moment within clusters that colors the noise."""

    noise_shape: Floats
    """(d, d), grid steps: the covariance of the sums' noise in a cluster of the usual width."""

    def by_size(self) -> "Clusters":
        """Return the same clusters, the largest first."""
        order = np.argsort(-self.counts, kind="stable")
        names = ("references", "counts", "sums", "sum_covariance", "centers", "sizes")
        return replace(self, **{name: getattr(self, name)[order] for name in names})


@dataclass(frozen=True, eq=False)
class Released:
    """What a fit releases, all of it noised or a function of noised numbers."""

    rows: float
    metric: Floats
    plan: Plan
    box: Box
    leaves: Leaves
    points: Floats
    """A sample drawn from the private summary, in metric coordinates about the box's center."""

    elbow: dict[int, float]
    clusters: Clusters
    loss: float
    """The mean squared distance to the nearest centroid, clipped, in metric units."""

    loss_cap: float


@dataclass(eq=False)
class Fit:
    """The private fit of one table."""

    grid: NDArray[np.int32] | Spool | Gridded
    mechanism: Mechanism
    metric: Floats
    clip: Clip
    rng: np.random.Generator
    remaining: Fraction = Fraction(1)
    """The part of mu^2 that is left for this fit, after bounds."""

    def run(self, n_clusters: int, k_range: tuple[int, int] | None) -> Released:
        """Run all passes; with ``k_range`` the number of clusters is chosen on the private summary."""
        most = n_clusters if k_range is None else k_range[1]
        total = self._fold(Count())
        [[count]], noise = self.mechanism.counts("count", total, self._part(COUNT_SHARE))
        n = max(float(count), 2 * noise, 1.0)  # too many rows shrink a mean, too few throw it out of the box
        mu = float(np.sqrt(float(self._part(1_000_000))))
        plan = make_plan(n, len(self.metric), most, mu)
        moments = self._moments(plan, n)
        box, deviations = self._box(plan, moments)
        leaves = self._leaves(plan, box, deviations, moments)
        residual = self._residual_root(moments, box)
        points = sample(leaves, box, residual, max(SAMPLE, 10 * most), self.rng)
        curve = {} if k_range is None else self._curve(leaves, box, residual, k_range)
        k = n_clusters if k_range is None else elbow(curve, effective_dimension(points))
        centers = self._start(points, box, k)
        about = points + box.center * self.metric
        growth = self._left_for_passes(plan)
        for number in range(1, plan.passes + 1):
            name = f"pass {number}"
            clusters = self._pass(name, self._part(plan.shares[name]) * growth, centers, about, n)
            settled = number == plan.passes or not plan.levels
            centers = clusters.centers if settled else self._rearranged(clusters, about)
        loss, cap = self._loss(plan, centers, n)
        return Released(n, self.metric, plan, box, leaves, points, curve, clusters.by_size(), loss, cap)

    @property
    def _half(self) -> Floats:
        return GRID_HALF * self.metric

    def _fold(self, state: State) -> Integers:
        return state.released(fold(self.grid, state))

    def _part(self, millionths: int) -> Fraction:
        return self.mechanism.share(millionths) * self.remaining

    def _moments(self, plan: Plan, n: float) -> Moments:
        """Learn mean and second moments as far as the plan has shares; else the middle and a wide guess."""
        d = len(self.metric)
        mean, covariance, noise = np.zeros(d), np.diag(self._half**2 / 6), np.inf
        clip = 0.8 * float(np.linalg.norm(self._half))
        whitening = Whitening.from_shape(np.eye(d), self.metric, clip)
        if plan.shares["mean"]:
            total = self._fold(Mean(np.zeros(d, dtype=np.int64), whitening))
            sums, scale = self.mechanism.sums("mean", total, self._part(plan.shares["mean"]))
            steps = shrunk(sums / n / scale, np.array([1 / n**2])) * scale
            mean = np.clip(whitening.color(steps[0]), -GRID_HALF, GRID_HALF)
        if plan.shares["moments"]:
            about = np.rint(mean).astype(np.int64)
            whitening = Whitening.from_shape(np.eye(d), self.metric, self._radius(plan, about, n))
            state = MomentSums(about, whitening)
            first, second = state.pairs
            sums, scale = self.mechanism.products(
                "moments", self._fold(state)[0], first == second, self._part(plan.shares["moments"])
            )
            whitened = np.zeros((d, d))
            whitened[first, second] = whitened[second, first] = sums / n
            color = whitening.inverse * self.metric[:, None] * (RADIUS / MOMENT_RADIUS)
            covariance = np.asarray(color @ whitened @ color.T)
            noise = scale / n * np.sqrt(2 * d) * np.linalg.norm(color, 2) ** 2
        return Moments(mean, covariance, float(noise))

    def _radius(self, plan: Plan, about: Integers, n: float) -> float:
        """Learn how far from a point all but a few rows lie, in steps of 2^(1/4)."""
        edges = self._farthest * 2.0 ** (np.arange(1 - _DISTANCES, 1) / 2)
        state = Distances(about[None], None, self.metric, edges)
        share = self._part(plan.shares["radius"])
        return float(np.sqrt(self._reach("radius", state, share, _BEYOND * n, doubt=1.0)))

    @property
    def _farthest(self) -> float:
        return 4 * float((self._half**2).sum())

    def _reach(self, part: str, state: Distances, share: Fraction, few: float, doubt: float) -> float:
        """Learn beyond which of the edges lie no more than a few rows, and ``doubt`` deviations of noise."""
        counts, noise = self.mechanism.counts(part, self._fold(state), share)
        beyond = np.append(np.cumsum(counts[:0:-1, 0])[::-1], 0.0)
        room = few + doubt * noise * np.sqrt(np.arange(len(state.edges))[::-1])
        return float(state.edges[int(np.flatnonzero(beyond > room).max(initial=-1)) + 1])

    def _box(self, plan: Plan, moments: Moments) -> tuple[Box, Floats]:
        """Lay the tree's box along learned directions, or along the sides of the domain.

        Returns it with the deviation of the rows along each side: infinite where rows are thought of as even.
        """
        half, depth = self._half, max(plan.levels, default=1)
        if plan.few:
            box = box_along(np.zeros(len(half), dtype=np.int64), np.eye(len(half)), half, self.metric, depth)
            return box, np.full(len(half), np.inf)
        directions, variances = np.eye(len(half))[:1], moments.spread()[:1, 0]
        if plan.learns_directions:
            found, clear = moments.principal(plan.directions)
            if len(found):
                directions, variances = found, clear
        deviations = np.sqrt(variances)
        widths = np.minimum(_REACH * deviations, np.abs(directions) @ half)
        return box_along(
            np.rint(moments.mean).astype(np.int64), directions, widths, self.metric, depth
        ), deviations

    def _leaves(self, plan: Plan, box: Box, deviations: Floats, moments: Moments) -> Leaves:
        """Grow the tree and measure the sums of those leaves that stand clear of the noise."""
        residual = self._outside(box) @ moments.spread() @ self._outside(box)
        sides, counts, measured = [], [], []
        levels, nodes, middles, whitenings = [], [], [], {}
        for level, keys, mass, clear in self._grow(plan, box):
            middle, width = box.cells(keys, level)
            low, high = middle - width, middle + width
            gaussian = np.isfinite(deviations)
            low[:, gaussian] = np.where(low <= -box.half_widths * _INSIDE, -np.inf, low)[:, gaussian]
            high[:, gaussian] = np.where(high >= box.half_widths * _INSIDE, np.inf, high)[:, gaussian]
            expected = cell_means(low, high, deviations)[clear]
            second = box.directions.T * (width**2 / 3) @ box.directions + residual
            region = self.clip(second, 0.02, 4 * float(np.linalg.norm(self._half)))
            whitening = Whitening.from_shape(region.shape, self.metric, region.radius)
            references = np.rint(expected @ box.directions / self.metric + box.center)
            references = np.clip(references, -GRID_HALF, GRID_HALF).astype(np.int64)
            levels.append(np.full(int(clear.sum()), level))
            nodes.append(keys[clear])
            middles.append(references)
            whitenings[level] = whitening
            sides.append((low, high))
            counts.append(mass)
            measured.append(clear)
        low, high = (np.vstack(side) for side in zip(*sides, strict=True))
        mass, clear = np.concatenate(counts), np.concatenate(measured)
        offsets = np.zeros((len(mass), len(self.metric)))
        if clear.any():
            state = LeafSums(
                box, np.concatenate(levels), np.concatenate(nodes), np.vstack(middles), whitenings
            )
            offsets[clear] = self._offsets(state, mass[clear], self._part(plan.shares["leaves"]))
        return Leaves(low, high, deviations, mass, offsets, clear)

    def _offsets(self, state: LeafSums, counts: Floats, share: Fraction) -> Floats:
        """Measure how far the means of leaves lie from what was expected, in metric coordinates, shrunk.

        A row lies in one leaf: all leaves are one release of one vector a row.
        """
        sums, scale = self.mechanism.sums("leaves", self._fold(state), share)
        safe = np.maximum(counts, 1.0)
        steps = shrunk(sums / safe[:, None] / scale, 1 / safe**2) * scale
        offsets = np.empty_like(steps)
        for level, whitening in state.whitenings.items():
            here = state.levels == level
            offsets[here] = whitening.color(steps[here]) * self.metric
        return offsets

    def _grow(self, plan: Plan, box: Box) -> list[tuple[int, Integers, Floats, NDArray[np.bool_]]]:
        """Grow the tree; return by levels its leaves: keys, numbers of rows, which stand clear of noise."""
        tree, cells = Tree(box), CellCounts(box)
        exact = self._fold(cells) if plan.levels else np.zeros((1, 1), dtype=np.int64)
        for at, level in enumerate(plan.levels):
            keys = tree.children(level)
            if not len(keys):
                break
            total = cells.at(exact, level, keys)
            counts, noise = self.mechanism.counts("tree", total, self._part(plan.level_shares[at]))
            last = at + 1 == len(plan.levels)
            following = 0.0 if last else noise * np.sqrt(plan.level_shares[at] / plan.level_shares[at + 1])
            room = 0 if last else most_nodes(len(self.metric)) >> (plan.levels[at + 1] - level)
            tree.grow(level, keys, counts, noise, (_SPLIT * following, room))
        root = np.zeros(1, dtype=np.int64)
        return tree.leaves(_CLEAR) or [(0, root, np.ones(1), np.zeros(1, dtype=bool))]

    def _start(self, points: Floats, box: Box, k: int) -> Floats:
        """Run K-means on the private sample; return its centroids in grid steps."""
        centers = best_centers(points, k, self.rng) / self.metric + box.center
        return np.clip(centers, -GRID_HALF, GRID_HALF)

    def _left_for_passes(self, plan: Plan) -> Fraction:
        """Return by what factor the passes may spend more than planned: a tree may stop early."""
        accountant = self.mechanism.accountant
        left = accountant.cap_squared - accountant.mu_squared - self._part(plan.shares["loss"])
        planned = sum(plan.shares[f"pass {number}"] for number in range(1, plan.passes + 1))
        return left / self._part(planned)

    def _pass(self, part: str, share: Fraction, centers: Floats, points: Floats, n: float) -> Clusters:
        """Run one colored Lloyd pass about published centroids."""
        k, d = centers.shape
        mu = float(np.sqrt(float(share)))
        guess = guess_clusters(points, centers * self.metric, n)
        region = self.clip(guess.second, clipped_share(n / k, d, mu), 2 * float(np.linalg.norm(self._half)))
        widest = guess.scales.max() / guess.scale
        whitening = Whitening.from_shape(region.shape, self.metric, region.radius * widest)
        references = np.rint(centers).astype(np.int64)
        steps = np.minimum(np.rint(guess.scales.max() / guess.scales * ZOOM), MOST_ZOOM).astype(np.int64)
        total = self._fold(Lloyd(references, Assignment(centers, self.metric), whitening, steps))
        zooms = steps / ZOOM
        count_share, sum_share = split_pass(share)
        counts, count_noise = self.mechanism.counts(part, total[:, 0], count_share)
        sums, scale = self.mechanism.sums(part, total[:, 1:], sum_share)
        precision = np.array([1 / (0.5 * guess.counts + 1) ** 2, np.full(k, 1 / count_noise**2)])
        known = np.maximum((precision * [guess.counts, counts]).sum(axis=0) / precision.sum(axis=0), 1.0)
        means = shrunk(sums / known[:, None] / scale, 1 / known**2) * scale
        moved = references + whitening.color(means) / zooms[:, None]
        return Clusters(
            references.astype(np.float64),
            counts,
            count_noise,
            whitening.color(sums) / zooms[:, None],
            whitening.covariance(scale) / zooms[:, None, None] ** 2,
            np.clip(moved, -GRID_HALF, GRID_HALF),
            known,
            guess.second,
            whitening.covariance(scale) / widest**2,
        )

    def _rearranged(self, clusters: Clusters, points: Floats) -> Floats:
        """Move centroids that the last pass has shown to be of little use.

        Rows that the summary expects but that the noisy count does not show are of no use: they may be noise.
        """
        few = points[:_CURVE_SAMPLE]
        labels = pairwise_distances_argmin(few, clusters.references * self.metric)
        found = np.bincount(labels, minlength=len(clusters.sizes))
        rows = np.minimum(clusters.sizes, np.maximum(clusters.counts, 0.0))
        weights = (rows / np.maximum(found, 1))[labels]
        centers = with_useless_moved(few, weights, clusters.centers * self.metric, self.rng) / self.metric
        return np.clip(centers, -GRID_HALF, GRID_HALF)

    def _loss(self, plan: Plan, centers: Floats, n: float) -> tuple[float, float]:
        """Release the mean squared distance to the nearest centroid, each row's clipped at a learned cap."""
        share, references = self._part(plan.shares["loss"]), np.rint(centers).astype(np.int64)
        assignment = Assignment(centers, self.metric)
        edges = self._farthest * 2.0 ** (np.arange(1 - _LOSS_DISTANCES, 1) / 2)
        state = Distances(references, assignment, self.metric, edges)
        cap = self._reach("loss", state, share / 2, _BEYOND_CAP * n, doubt=2.0)
        total = self._fold(Loss(references, assignment, self.metric, cap))
        [[sum_]], _ = self.mechanism.counts("loss", total, share / 2)
        return max(float(sum_), 0.0) * cap / n, cap

    def _curve(
        self, leaves: Leaves, box: Box, residual: Floats, k_range: tuple[int, int]
    ) -> dict[int, float]:
        """Return the K-means loss of the private summary for every K in the range.

        Leaves that may be nothing but noise are left out: far from the others, each would pass for a cluster.
        """
        size = max(_CURVE_SAMPLE, 4 * k_range[1])
        points = sample(leaves.only_clear(), box, residual, size, self.rng)
        curve = {}
        for k in range(k_range[0], k_range[1] + 1):
            start = KMeans(k, n_init=4, random_state=int(self.rng.integers(2**31)))
            curve[k] = float(start.fit(points).inertia_) / size
        return curve

    def _outside(self, box: Box) -> Floats:
        return np.asarray(np.eye(len(self.metric)) - box.directions.T @ box.directions)

    def _residual_root(self, moments: Moments, box: Box) -> Floats:
        """Return the square root of the covariance across the directions that the box does not have."""
        outside = self._outside(box)
        values, vectors = np.linalg.eigh(outside @ moments.spread() @ outside)
        return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
