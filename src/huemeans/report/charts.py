"""The pictures of the report, each drawn from a release alone."""

from html import escape
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from huemeans.report.svg import element, figure, line, text, ticks
from huemeans.report.words import deviations, pair, rounded

if TYPE_CHECKING:
    from huemeans.release import Release

Floats = NDArray[np.float64]

WIDTH: Final = 720.0
COLORS: Final = 8
_LEVEL: Final = 5.991  # the 95 % quantile of chi-square with two degrees of freedom
_CIRCLE: Final = np.linspace(0, 2 * np.pi, 73)
_MOST_DOTS: Final = 800
_LABEL: Final = 26  # letters of a feature's name that fit beside a chart
_FULL: Final = 2.0  # deviations at which the heat map has its full color


def hue(cluster: int) -> str:
    """Return the class that gives a cluster its color."""
    return f"c{cluster % COLORS}"


def short(name: str) -> str:
    """Return a name that fits."""
    return name if len(name) <= _LABEL else name[: _LABEL - 1] + "…"


def sizes_chart(release: "Release") -> str:
    """Draw the size of each cluster as a bar, with two standard deviations of its noise."""
    sizes, error, step = release.sizes, 2 * release.size_error, 30.0
    left, right = 90.0, 130.0
    scale = (WIDTH - left - right) / max(float((sizes + error).max()), 1.0)
    parts = []
    for at, size in enumerate(sizes):
        y = 12 + at * step
        low, high = left + max(size - error, 0.0) * scale, left + (size + error) * scale
        parts += [
            text(f"Cluster {at + 1}", left - 10, y + 14, text_anchor="end"),
            element("rect", x=left, y=y, width=max(size * scale, 0.5), height=18, rx=3, class_=hue(at)),
            line(low, y + 9, high, y + 9, class_="whisker"),
            line(low, y + 5, low, y + 13, class_="whisker"),
            line(high, y + 5, high, y + 13, class_="whisker"),
            text(pair(float(size), error), high + 10, y + 14, class_="quiet"),
        ]
    return figure("".join(parts), WIDTH, 16 + step * len(sizes), "Sizes of the clusters")


def heat_map(release: "Release") -> str:
    """Draw every centroid by feature: color is the distance from the average, the figure is in raw units."""
    away, centers, bars, names = (
        deviations(release),
        release.centers,
        release.error_bars,
        release.feature_names,
    )
    left, top, row = 200.0, 30.0, 26.0
    column = (WIDTH - left) / len(centers)
    roomy = column > 44  # noqa: PLR2004  # pixels that a figure needs
    parts = [
        text(str(at + 1), left + (at + 0.5) * column, 20, text_anchor="middle", class_="quiet")
        for at in range(len(centers))
    ]
    for feature, name in enumerate(names):
        y = top + feature * row
        parts.append(text(short(name), left - 10, y + 17, text_anchor="end"))
        for cluster in range(len(centers)):
            value = away[cluster, feature]
            strength = min(abs(value) / _FULL, 1.0)
            x = left + cluster * column
            shown = rounded(float(centers[cluster, feature]), float(bars[cluster, feature]))
            words = f"Cluster {cluster + 1}, {name}: {shown}"
            cell = element("title", escape(f"{words}, {value:+.1f} sd from the average"))
            parts.append(
                element("rect", cell, x=x + 1, y=y + 1, width=max(column - 2, 1.0), height=row - 2, rx=3,
                        class_="hot" if value > 0 else "cold", fill_opacity=0.08 + 0.72 * strength)
            )  # fmt: skip
            if roomy:
                parts.append(
                    text(shown, x + column / 2, y + 17, text_anchor="middle",
                         class_="cell" if strength < 0.6 else "cell strong")  # noqa: PLR2004
                )  # fmt: skip
    return figure("".join(parts), WIDTH, top + row * len(names) + 6, "Centroids by feature")


def map_chart(release: "Release") -> str:
    """Draw the private summary on a plane, with the centroids and their 95 % ellipses of noise.

    Classical scaling of Euclidean distances is the projection on the two main directions.
    """
    counts, means = release.summary
    means, centers = means * release.lengths, release.centers * release.lengths
    scaled = release.lengths * release.lengths[:, None]
    middle = counts @ means / max(counts.sum(), 1e-300)
    apart = (means - middle) * np.sqrt(np.maximum(counts, 0.0))[:, None]
    axes = np.linalg.svd(np.vstack([apart, np.zeros((2, means.shape[1]))]), full_matrices=False)[2][:2]
    axes = np.vstack([axes, np.zeros((2 - len(axes), means.shape[1]))])
    dots, stars = (means - middle) @ axes.T, (centers - middle) @ axes.T
    rings = [_ring(axes @ (covariance * scaled) @ axes.T) for covariance in release.noise_covariance]
    low = np.vstack([dots, stars]).min(axis=0)
    high = np.vstack([dots, stars]).max(axis=0)
    span = float(max((high - low).max(), 1e-300))
    height = 470.0
    scale = min((WIDTH - 80) / max(high[0] - low[0], 0.25 * span),
                (height - 60) / max(high[1] - low[1], 0.25 * span))  # fmt: skip

    def place(points: Floats) -> Floats:
        return np.asarray(np.array([WIDTH, height]) / 2 + (points - (low + high) / 2) * [scale, -scale])

    nearest = ((dots[:, None] - stars) ** 2).sum(axis=2).argmin(axis=1)
    if means.shape[1] > 2:  # noqa: PLR2004  # nearness in all features, not on the plane
        nearest = ((means[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    heaviest = np.argsort(-counts)[:_MOST_DOTS]
    radii = 2 + 16 * np.sqrt(counts / max(counts.max(), 1e-300))
    parts = [
        element("circle", cx=float(x), cy=float(y), r=float(radii[at]), class_=f"dot {hue(int(nearest[at]))}")
        for at, (x, y) in zip(heaviest, place(dots[heaviest]), strict=True)
    ]
    for at, (star, ring) in enumerate(zip(place(stars), rings, strict=True)):
        x, y = (float(v) for v in star)
        if ring is not None:
            outline = " ".join(f"{float(u):.1f},{float(v):.1f}" for u, v in star + ring * [scale, -scale])
            parts.append(element("polygon", points=outline, class_=f"ring {hue(at)}"))
        parts += [
            element("circle", cx=x, cy=y, r=10.0, class_=f"star {hue(at)}"),
            text(str(at + 1), x, y + 4, text_anchor="middle", class_="on"),
        ]
    return figure("".join(parts), WIDTH, height, "Map of the private summary with the centroids")


def _ring(covariance: Floats) -> Floats | None:
    """Return the outline of the 95 % ellipse of a covariance on the plane."""
    if not np.isfinite(covariance).all():
        return None
    values, vectors = np.linalg.eigh(covariance)
    circle = np.stack([np.cos(_CIRCLE), np.sin(_CIRCLE)], axis=1)
    return np.asarray(circle * np.sqrt(_LEVEL * np.maximum(values, 0.0)) @ vectors.T)


def elbow_chart(release: "Release") -> str:
    """Draw the loss of the private summary over the number of clusters, with the one that was chosen."""
    curve = release.elbow
    ks = sorted(curve)
    losses = np.array([curve[k] for k in ks])
    chosen = release.document["n_clusters"]["value"]
    return _curve_chart(
        np.array(ks, dtype=float), losses, (float(ks[0]), float(ks[-1])), "number of clusters",
        "loss of the summary a row", "Loss of the private summary over the number of clusters", marked=chosen,
    )  # fmt: skip


def noise_chart(release: "Release") -> str:
    """Draw, per feature, the noise of a centroid beside that of white noise with the same privacy."""
    lengths = release.lengths
    variances = np.diag(release.noise_shape) * lengths**2
    weights = np.ones(len(lengths)) if release.feature_weights is None else release.feature_weights
    excess = (1 + release.white_gap) / (1 + release.color_gap)
    white = (weights * variances).sum() * excess / weights.sum()
    spread = np.sqrt(np.maximum(np.diag(release.moments), 1e-300)) * lengths
    colored, plain = np.sqrt(variances) / spread, np.sqrt(white) / spread
    left, row = 200.0, 26.0
    scale = (WIDTH - left - 20) / max(float(colored.max()), float(plain.max()), 1e-300)
    parts = []
    for at, name in enumerate(release.feature_names):
        y = 6 + at * row
        parts += [
            text(short(name), left - 10, y + 14, text_anchor="end"),
            element("rect", x=left, y=y, width=float(colored[at] * scale), height=8, rx=2, class_="mine"),
            element("rect", x=left, y=y + 10, width=float(plain[at] * scale), height=8, rx=2, class_="white"),
        ]
    label = "Noise by feature, colored and white, relative to the spread of the rows"
    return figure("".join(parts), WIDTH, 12 + row * len(colored), label)


def guarantee_chart(release: "Release") -> str:
    """Draw what the release keeps at every epsilon: the smallest delta, on a logarithmic scale."""
    curve = np.array(release.document["guarantee"]["curve"])
    kept = curve[curve[:, 1] > 1e-30]  # noqa: PLR2004  # beyond what a reader could tell from never
    logs = np.log10(kept[:, 1])
    return _curve_chart(
        kept[:, 0], logs, (0.0, float(kept[-1, 0])), "epsilon", "delta, powers of ten",
        "The delta that is kept at every epsilon", marked=release.guarantee.epsilon, floor=False,
    )  # fmt: skip


def _curve_chart(  # noqa: PLR0917  # a chart has two axes, with figures and a label each
    xs: Floats,
    ys: Floats,
    limits: tuple[float, float],
    x_label: str,
    y_label: str,
    label: str,
    *,
    marked: float,
    floor: bool = True,
) -> str:
    left, right, top, bottom, height = 70.0, 20.0, 26.0, 44.0, 280.0
    low = 0.0 if floor else float(ys.min())
    high = float(ys.max()) if ys.max() > low else low + 1
    span = max(limits[1] - limits[0], 1e-300)

    def across(x: float) -> float:
        return left + (x - limits[0]) / span * (WIDTH - left - right)

    def up(y: float) -> float:
        return height - bottom - (y - low) / (high - low) * (height - top - bottom)

    parts = [text(y_label, left, 14, class_="quiet")]
    for y in ticks(low, high):
        parts += [
            line(left, up(y), WIDTH - right, up(y), class_="grid"),
            text(f"{y:g}", left - 8, up(y) + 4, text_anchor="end", class_="quiet"),
        ]
    parts += [
        text(f"{x:g}", across(x), height - bottom + 18, text_anchor="middle", class_="quiet")
        for x in ticks(*limits)
    ]
    parts.append(text(x_label, WIDTH - right, height - 6, text_anchor="end", class_="quiet"))
    path = " ".join(f"{across(float(x)):.1f},{up(float(y)):.1f}" for x, y in zip(xs, ys, strict=True))
    parts.append(element("polyline", points=path, class_="curve"))
    at = int(np.abs(xs - marked).argmin())
    parts.append(element("circle", cx=across(float(xs[at])), cy=up(float(ys[at])), r=6.0, class_="mark"))
    return figure("".join(parts), WIDTH, height, label)
