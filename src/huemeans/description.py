"""What a private fit says of itself: the content of its release, of released numbers and public facts."""

import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from huemeans.color_gap import color_gap
from huemeans.discretization import Draws, real_delta
from huemeans.domain import Domain
from huemeans.guarantee import Guarantee
from huemeans.ledger import Entry
from huemeans.pipeline import Released
from huemeans.settings import lengths_of

Floats = NDArray[np.float64]

_MOST_LEAVES: Final = 2000
_CURVE: Final = np.arange(0.1, 2.01, 0.1)  # epsilons, in units of the declared one

PUBLIC: Final = (
    "epsilon, delta, the number of clusters or its range, and all other settings",
    "the names of the features",
    "the budget's split into parts, which follows from settings and from a noisy number of rows",
)
PUBLIC_BOUNDS: Final = "the bounds of the features, which the holder has said are not read off the rows"
NOT_PROTECTED: Final = (
    "that the data set exists, and who holds it",
    "how long the fit took, and how much memory it used",
    "what is computed from the same rows by other means; a second release adds to this one",
    "labels of rows: predict and transform are for the holder",
)


@dataclass(frozen=True, eq=False)
class Settings:
    """What was public before the fit."""

    noise: str
    scale: str
    k_range: tuple[int, int] | None
    missing: Any
    outside: str
    bounds_learned: bool
    weights: Floats | None


@dataclass(frozen=True, eq=False)
class Figures:
    """The attributes of the fitted estimator that are published."""

    centers: Floats
    sizes: Floats
    covariances: Floats
    loss: float
    summary_counts: Floats
    summary_means: Floats
    mu: float
    parts: dict[str, float]


def release_content(  # noqa: PLR0917  # what a release is made of
    released: Released,
    figures: Figures,
    domain: Domain,
    settings: Settings,
    guarantee: Guarantee,
    caps: Draws,
    entry: Entry | None,
) -> dict[str, Any]:
    """Return the content of a release, as plain numbers, words and lists."""
    clusters, step = released.clusters, domain.step
    raw = step / released.metric
    lengths = lengths_of(domain, settings.scale)
    shape = clusters.noise_shape * step * step[:, None]
    moments = clusters.second * raw * raw[:, None]
    scaled = lengths * lengths[:, None]
    order = np.argsort(-figures.summary_counts, kind="stable")[:_MOST_LEAVES]
    order = order[figures.summary_counts[order] > 0] if figures.summary_counts.any() else order[:1]
    return {
        "created": datetime.now(UTC).date().isoformat(),
        "features": [
            {"name": name, "lower": float(low), "upper": float(high)}
            for name, low, high in zip(domain.names, domain.lower, domain.upper, strict=True)
        ],
        "bounds": "learned" if settings.bounds_learned else "public",
        "missing": settings.missing if isinstance(settings.missing, str) else _plain(settings.missing),
        "outside": settings.outside,
        "scale": settings.scale,
        "feature_weights": None if settings.weights is None else _plain(settings.weights),
        "noise": {
            "kind": settings.noise,
            "shape": _plain(shape),
            "gap": color_gap(shape * scaled, moments * scaled, settings.weights),
        },
        "moments": _plain(moments),
        "n_clusters": {
            "value": len(figures.centers),
            "chosen": "given" if settings.k_range is None else "elbow",
            "range": None if settings.k_range is None else [int(k) for k in settings.k_range],
        },
        "clusters": [
            {
                "center": _plain(center),
                "size": float(size),
                "size_error": float(clusters.count_noise),
                "covariance": _plain(covariance) if np.isfinite(covariance).all() else None,
            }
            for center, size, covariance in zip(
                figures.centers, figures.sizes, figures.covariances, strict=True
            )
        ],
        "loss": float(figures.loss),
        "elbow": [
            [int(k), float(loss) * float(raw[0] * lengths[0]) ** 2]
            for k, loss in sorted(released.elbow.items())
        ],
        "summary": {
            "counts": _plain(figures.summary_counts[order]),
            "means": _plain(figures.summary_means[order]),
        },
        "guarantee": _promise(guarantee, caps),
        "plan": {"mu": figures.mu, "parts": figures.parts},
        "public": [*PUBLIC, *([] if settings.bounds_learned else [PUBLIC_BOUNDS])],
        "not_protected": list(NOT_PROTECTED),
        "software": {
            "huemeans": version("huemeans"),
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
        },
        "seeded": guarantee.seeded,
        "ledger": None
        if entry is None
        else {"dataset": entry.dataset, "entry": entry.number, "hash": entry.hash},
    }


def _promise(guarantee: Guarantee, caps: Draws) -> dict[str, Any]:
    """Return the guarantee with its curve of delta over epsilon, discreteness of the noise included."""
    mu = guarantee.mu or 0.0
    share = caps.inverse_square_sum
    return {
        "notion": guarantee.notion,
        "epsilon": float(guarantee.epsilon),
        "delta": float(guarantee.delta),
        "neighbors": guarantee.unit.neighbors,
        "max_rows_per_person": guarantee.unit.max_rows,
        "fixed": list(guarantee.fixed),
        "mu": float(mu),
        "draws": {"count": caps.count, "inverse_square_sum": f"{share.numerator}/{share.denominator}"},
        "curve": [
            [float(epsilon), float(real_delta(mu, float(epsilon), caps))]
            for epsilon in guarantee.epsilon * _CURVE
        ],
    }


def _plain(values: Any) -> list[Any]:
    """Return an array as nested lists of Python's floats."""
    listed: list[Any] = np.asarray(values, dtype=np.float64).tolist()
    return listed
