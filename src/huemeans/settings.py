"""What is public about a private fit, checked and turned into lengths before the budget is touched."""

from collections.abc import Mapping, Sized
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_random_state

from huemeans import checks
from huemeans.distributed import Distributed
from huemeans.domain import Domain
from huemeans.guarantee import NEIGHBORS
from huemeans.planning import MOST_CLUSTERS
from huemeans.spool import LazyTable

if TYPE_CHECKING:
    from huemeans.private import PrivateKMeans

Floats = NDArray[np.float64]

_MOST_RATIO: Final = 1e60
_MOST_WEIGHT: Final = 1e12


def lengths_of(domain: Domain, scale: str) -> Floats:
    """Return the length of a raw unit along each feature, as distance is measured."""
    return 1 / (domain.upper - domain.lower) if scale == "bounds" else np.ones(domain.n_features)


def metric_of(domain: Domain, scale: str) -> Floats:
    """Return the length of a grid step along each feature, in units of the diagonal of the domain."""
    steps = domain.step
    if steps.max() > _MOST_RATIO * steps.min() or not 1 / _MOST_RATIO < steps.max() < _MOST_RATIO:
        checks.refuse("bounds", "<bounds>", f"widths within a factor of {_MOST_RATIO:g}", "Use other units")
    relative = steps / steps.max() if scale == "raw" else np.ones(len(steps))
    return np.asarray(relative / (np.linalg.norm(relative) * 2**20))


def weights_of(given: Any, names: list[str]) -> Floats | None:
    """Return how much the squared error of each feature matters, (d,), or None if all matter the same."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        if set(given) != set(names):
            checks.refuse("feature_weights", "<mapping>", "one weight per feature name", "Name every feature")
        given = [given[name] for name in names]
    weights = checks.public_array(
        "feature_weights", given, above=0, expected="finite weights above 0", remedy="Use 1 for the usual"
    )
    checks.shaped("feature_weights", weights, (len(names),))
    if weights.max() > _MOST_WEIGHT * weights.min():
        expected = f"weights within a factor of {_MOST_WEIGHT:g}"
        checks.refuse("feature_weights", "<weights>", expected, "Leave out what does not matter")
    return weights


def check_person(source: Floats | LazyTable | Distributed, person: ArrayLike | None) -> None:
    """Refuse what cannot say whose the rows are."""
    if person is None:
        return
    if isinstance(source, Distributed):
        remedy = "Leave at most max_rows_per_person rows of each person in the table, and leave person out"
        checks.refuse("person", "<given>", "no person beside a Dask or Spark table", remedy)
    if isinstance(source, LazyTable):
        checks.refuse("person", "<given>", "no person beside a table in a file", "Use open_table(unit=...)")
    if isinstance(person, Sized) and len(person) != len(source):
        checks.refuse("person", "<another length>", "one entry per row", "Say whose each row is")


def check_parameters(model: "PrivateKMeans") -> None:
    """Refuse parameters that no fit can have."""
    if model.n_clusters != "auto":
        remedy = "Say how many clusters, or 'auto'"
        checks.integer("n_clusters", model.n_clusters, least=1, most=MOST_CLUSTERS, remedy=remedy)
    checks.epsilon(model.epsilon)
    checks.delta(model.delta)
    checks.choice("neighbors", model.neighbors, NEIGHBORS)
    checks.choice("noise", model.noise, ("colored", "white"))
    checks.choice("scale", model.scale, ("raw", "bounds"))
    checks.choice("outside", model.outside, ("clip", "drop"))
    check_random_state(model.random_state)
    if model.dataset is not None and model.ledger is None:
        checks.refuse("ledger", "None", "the ledger of the data set", "Pass ledger=..., or no dataset")
    hint = "Say how many rows one person has at most"
    checks.integer("max_rows_per_person", model.max_rows_per_person, least=1, remedy=hint)
    if isinstance(model.bounds, str):
        checks.choice("bounds", model.bounds, ("private",))
        if not isinstance(model.missing, str):
            checks.refuse("missing", "<constants>", "'midpoint' or 'drop' with private bounds", "Give bounds")
    low, high = model.k_range
    checks.integer("k_range", low, least=1, remedy="Pass (smallest, largest)")
    checks.integer("k_range", high, least=int(low), most=MOST_CLUSTERS, remedy="Pass (smallest, largest)")
