"""Clusters of the campaign table: the recipes that give the paper's table 1, elbow, classes in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from huemeans.baselines.common import nearest
from huemeans.paper.campaign import Campaign, engineered, literal

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]

CLUSTERS: Final = 4
PAPER_TRUE: Final = (586, 510, 506, 610)
PAPER_NOISY: Final = (581, 483, 459, 679)
PAPER_CLASSES: Final = (("medium", "low"), ("medium", "medium"), ("high", "high"), ("low", "low"))
"""Income and spending of the classes, in the words of the paper."""

_LOW: Final = {"income": 0.75, "spending": 0.5}  # of the overall mean: below is low, above is high
_HIGH: Final = {"income": 1.25, "spending": 1.5}


@dataclass(frozen=True, eq=False)
class Recipe:
    """A way from the table to numbers, and the customers whose rows Lloyd's algorithm starts from."""

    name: str
    words: str
    start: tuple[int, ...]
    """IDs, in the order of table 1's classes; none: best of ten starts."""


RECIPES: Final = (
    Recipe(
        "R1",
        "23 engineered columns, education coded by the alphabet, Lloyd's algorithm from four named customers",
        (6357, 5564, 1177, 2166),
    ),
    Recipe(
        "R2",
        "23 engineered columns, education in three levels, Lloyd's algorithm from four named customers",
        (2036, 9495, 833, 10403),
    ),
    Recipe("literal 28", "the 28 columns that the paper's text names, best of ten starts", ()),
)


@dataclass(frozen=True, eq=False)
class Clustering:
    """A table of numbers and its clusters."""

    recipe: Recipe
    rows: Floats
    labels: Labels
    centers: Floats

    @property
    def sizes(self) -> list[int]:
        """How many customers each cluster has."""
        return [int(size) for size in np.bincount(self.labels, minlength=CLUSTERS)]

    @property
    def loss(self) -> float:
        """The mean squared distance to the centroid."""
        return loss(self.rows, self.centers)


def loss(rows: Floats, centers: Floats) -> float:
    """Return the mean squared distance to the nearest centroid."""
    return float(((rows - centers[nearest(rows, centers)]) ** 2).sum(axis=1).mean())


def numbers_of(campaign: Campaign, recipe: Recipe) -> Floats:
    """Return the columns that a recipe clusters."""
    if recipe.name == "literal 28":
        return literal(campaign)
    return engineered(campaign, levels=recipe.name == "R2")


def clustered(campaign: Campaign, recipe: Recipe) -> Clustering:
    """Cluster the table as the recipe says; from the best of ten starts where no named customer is there."""
    rows, ids = numbers_of(campaign, recipe), campaign.numbers["ID"]
    if recipe.start and np.isin(recipe.start, ids).all():
        at = [int(np.flatnonzero(ids == one)[0]) for one in recipe.start]
        return Clustering(recipe, rows, *lloyd(rows, rows[at]))
    best = KMeans(CLUSTERS, n_init=10, random_state=0).fit(rows)
    labels, centers = lloyd(rows, best.cluster_centers_)
    order = np.argsort([-float(campaign.spent[labels == k].mean()) for k in range(CLUSTERS)])
    order = order[[1, 0, 2, 3]]  # as in table 1: the most is spent in class 1
    return Clustering(recipe, rows, np.argsort(order)[labels], centers[order])


def lloyd(rows: Floats, centers: Floats) -> tuple[Labels, Floats]:
    """Run Lloyd's algorithm until no label changes."""
    labels = nearest(rows, centers)
    while True:
        centers = np.stack([rows[labels == k].mean(axis=0) for k in range(len(centers))])
        found = nearest(rows, centers)
        if (found == labels).all():
            return labels, centers
        labels = found


def elbow_curve(rows: Floats, ks: Sequence[int]) -> list[float]:
    """Return the K-means loss for each number of clusters, best of five starts."""
    return [float(KMeans(k, n_init=5, random_state=0).fit(rows).inertia_) for k in ks]


def knee(ks: Sequence[int], losses: Sequence[float]) -> int:
    """Return the number of clusters whose loss lies farthest below the chord of the curve."""
    k, value = np.array(ks, dtype=float), np.array(losses)
    across = (k - k[0]) / (k[-1] - k[0])
    down = (value - value[-1]) / (value[0] - value[-1])
    return int(k[(1 - across - down).argmax()])


@dataclass(frozen=True)
class Profile:
    """What a cluster's customers are like."""

    size: int
    income: float
    spending: float
    deals: float
    promotions: float
    words: tuple[str, str]
    """Income and spending: low, medium or high."""


def profiles(campaign: Campaign, labels: Labels) -> list[Profile]:
    """Return the profile of every cluster, empty ones with NaN."""
    income, spending = campaign.numbers["Income"], campaign.spent
    deals, promotions = campaign.numbers["NumDealsPurchases"], campaign.promotions
    found = []
    for k in range(CLUSTERS):
        here = labels == k
        earned, paid, offers, accepted = (
            float(column[here].mean()) if here.any() else float("nan")
            for column in (income, spending, deals, promotions)
        )
        words = (
            _word("income", earned / float(income.mean())),
            _word("spending", paid / float(spending.mean())),
        )
        found.append(Profile(int(here.sum()), earned, paid, offers, accepted, words))
    return found


def _word(what: str, share: float) -> str:
    return "low" if share < _LOW[what] else "high" if share > _HIGH[what] else "medium"
