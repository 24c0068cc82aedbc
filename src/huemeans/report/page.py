"""The report as one HTML page."""

from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from huemeans.report.charts import (
    elbow_chart,
    guarantee_chart,
    heat_map,
    hue,
    map_chart,
    noise_chart,
    sizes_chart,
)
from huemeans.report.words import average, described, number, pair, rounded

if TYPE_CHECKING:
    from huemeans.release import Release

_ORDER = ("bounds", "count", "mean", "radius", "moments", "tree", "leaves", "pass", "loss", "unspent")


def report_page(release: "Release") -> str:
    """Return the page; everything in it comes from the release."""
    source = files("huemeans.report").joinpath("page.html").read_text(encoding="utf-8")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(source).render(_content(release))


def _content(release: "Release") -> dict[str, Any]:
    document, promise = release.document, release.guarantee
    spent = document["plan"]["parts"]
    parts = {name: spent[name] for name in sorted(spent, key=_when) if spent[name] > 0}
    whole = sum(mu**2 for mu in parts.values())
    return {
        "document": document,
        "promise": str(promise),
        "epsilon": f"{promise.epsilon:g}",
        "delta": f"{promise.delta:g}",
        "odds": number(float(np.exp(min(promise.epsilon, 700.0)))),
        "unit": str(promise.unit),
        "clusters": [
            {"number": at + 1, "hue": hue(at), "words": words} for at, words in enumerate(described(release))
        ],
        "names": release.feature_names,
        "table": _table(release),
        "average": [
            rounded(float(value), float(bar), 1)
            for value, bar in zip(
                average(release), np.nanmin(release.error_bars, axis=0, initial=np.inf), strict=True
            )
        ],
        "loss": number(release.loss),
        "white": f"{100 * release.white_gap:.0f}",
        "parts": [(name, f"{mu:.3g}", 100 * mu**2 / whole) for name, mu in parts.items()],
        "findings": release.verify(),
        "charts": {
            "sizes": Markup(sizes_chart(release)),  # noqa: S704  # all text in it is escaped
            "heat": Markup(heat_map(release)),  # noqa: S704
            "map": Markup(map_chart(release)),  # noqa: S704
            "elbow": Markup(elbow_chart(release)) if release.elbow else None,  # noqa: S704
            "noise": Markup(noise_chart(release)),  # noqa: S704
            "guarantee": Markup(guarantee_chart(release)),  # noqa: S704
        },
    }


def _when(part: str) -> tuple[int, str]:
    """Return where in a fit a part is spent."""
    first = part.split(" ", maxsplit=1)[0]
    return (_ORDER.index(first) if first in _ORDER else len(_ORDER)), part


def _table(release: "Release") -> list[tuple[str, list[str]]]:
    """Return a row for each feature: its name, and its centroids with two standard deviations of noise."""
    bars = 2 * release.error_bars
    return [
        (name, [pair(float(v), float(e)) for v, e in zip(release.centers[:, at], bars[:, at], strict=True)])
        for at, name in enumerate(release.feature_names)
    ]
