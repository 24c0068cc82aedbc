"""The pictures of the paper's numerical section, legible in grey: every series has its own mark and line."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.manifold import smacof
from sklearn.metrics import pairwise_distances

from huemeans.paper.campaign import Campaign
from huemeans.paper.clusters import CLUSTERS, Clustering
from huemeans.paper.schemes import BALCAN, COLORED, DELTAS, EPSILONS, EXACT, LEMMA, PRIVATE, WHITE, Point

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]

SHADES: Final = ("#14213d", "#a8473a", "#7fbdb4", "#fbe7a3")
"""Of the classes, dark to light."""

MARKS: Final = ("o", "s", "^", "D")
LINES: Final[dict[str, dict[str, Any]]] = {
    WHITE: {"color": "#8a8f98", "marker": "s", "linestyle": "--"},
    COLORED: {"color": "#1b2a49", "marker": "o", "linestyle": "-"},
    EXACT: {"color": "#3d6fb0", "marker": "v", "linestyle": "-."},
    LEMMA: {"color": "#b5483a", "marker": "x", "linestyle": ":"},
    BALCAN: {"color": "#e0a030", "marker": "^", "linestyle": "--"},
    PRIVATE: {"color": "#2e8b6f", "marker": "D", "linestyle": "-"},
}
_PAPER: Final = (WHITE, COLORED, BALCAN)
_ROUNDS: Final = 60
_STYLE: Final[Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "huemeans",
}


def drawn(path: Path, draw: Callable[[Any], None], size: tuple[float, float], **panels: Any) -> None:
    """Draw a picture of one or more panels and write it."""
    with rc_context(_STYLE):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.subplots(**panels))
        figure.savefig(path, metadata={"Date": None}, dpi=180)


def flat_map(rows: Floats) -> Floats:
    """Return rows on a plane by metric multidimensional scaling, from classical scaling on."""
    middle = rows - rows.mean(axis=0)
    u, s, _ = np.linalg.svd(middle, full_matrices=False)
    start = u[:, :2] * s[:2]
    found: Floats = smacof(
        pairwise_distances(rows),
        n_components=2,
        init=start,
        n_init=1,
        max_iter=_ROUNDS,
        normalized_stress=False,
    )[0]
    return found


def draw_elbow(axes: Axes, ks: Sequence[int], losses: Sequence[float], chosen: int) -> None:
    """Draw the K-means loss against the number of clusters."""
    axes.plot(ks, losses, color=SHADES[0], marker="o")
    axes.plot([chosen], [losses[list(ks).index(chosen)]], marker="o", markersize=13, markerfacecolor="none",
              color=SHADES[1], linestyle="none", label=f"K = {chosen}")  # fmt: skip
    axes.set(xlabel="number of clusters", ylabel="sum of squared distances", xticks=list(ks))
    axes.legend()


def draw_map(axes: Axes, places: Floats, labels: Labels) -> None:
    """Draw customers on a plane (figure 1a)."""
    _scatter(axes, places, labels)
    axes.set(xlabel="first coordinate", ylabel="second coordinate", aspect="equal")
    axes.legend(title="class", markerscale=1.6)


def draw_spending(axes: Sequence[Axes], campaign: Campaign, true: Labels, noisy: Labels) -> None:
    """Draw spending against income, by true and by noisy classes (figure 1b)."""
    places = np.column_stack([campaign.numbers["Income"] / 1000, campaign.spent])
    for panel, labels, title in zip(axes, (true, noisy), ("true centroids", "noisy centroids"), strict=True):
        _scatter(panel, places, labels)
        panel.set(xlabel="income, thousands", title=title)
    axes[0].set(ylabel="spending")
    axes[0].legend(title="class", markerscale=1.6)


def _scatter(axes: Axes, places: Floats, labels: Labels) -> None:
    look: Any = {"s": 15, "linewidths": 0.35, "edgecolors": "#30343a", "rasterized": True}
    for k in range(CLUSTERS):
        x, y = places[labels == k].T
        axes.scatter(x, y, color=SHADES[k], marker=MARKS[k], label=str(k), **look)


def draw_violins(axes: Axes, values: Floats, true: Labels, noisy: Labels, name: str) -> None:
    """Draw how a number is distributed within classes, by true and by noisy centroids (figure 3)."""
    for labels, shift, shade, hatch, label in (
        (true, -0.2, SHADES[0], None, "true"),
        (noisy, 0.2, SHADES[3], "///", "noisy"),
    ):
        groups = [values[labels == k] for k in range(CLUSTERS)]
        kept = [k for k in range(CLUSTERS) if len(groups[k]) > 1 and np.ptp(groups[k]) > 0]
        parts = axes.violinplot(
            [groups[k] for k in kept], [k + shift for k in kept], widths=0.36, showmeans=True
        )
        bodies: Any = parts["bodies"]
        for body in bodies:
            body.set(facecolor=shade, edgecolor="black", alpha=0.75, hatch=hatch)
        for line in ("cbars", "cmins", "cmaxes", "cmeans"):
            parts[line].set(color="black", linewidth=0.8)
        axes.fill_between([], [], color=shade, alpha=0.75, hatch=hatch, edgecolor="black", label=label)
    axes.set(xlabel="class", ylabel=name, xticks=range(CLUSTERS))
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def draw_losses(axes: Any, points: Sequence[Point], schemes: Sequence[str]) -> None:
    """Draw fractional clustering loss against epsilon, a panel for each delta (figure 2)."""
    for panel, delta in zip(np.ravel(axes), DELTAS, strict=True):
        for scheme in schemes:
            here = {p.epsilon: p for p in points if p.scheme == scheme and p.delta == delta}
            if here:
                found = [here[epsilon] for epsilon in EPSILONS]
                losses, errors = [max(p.loss, 1e-8) for p in found], [2 * p.error for p in found]
                look = LINES[scheme] | {"markersize": 5, "linewidth": 1.4}
                panel.errorbar(EPSILONS, losses, yerr=errors, label=scheme, **look)
        panel.set(xscale="log", yscale="log", title=f"delta = {delta:g}", xlabel="epsilon")
        panel.grid(alpha=0.25)
    np.ravel(axes)[0].set(ylabel="fractional clustering loss")
    handles, names = np.ravel(axes)[0].get_legend_handles_labels()
    np.ravel(axes)[0].figure.legend(handles, names, loc="outside lower center", ncols=3)


def draw_all(  # noqa: PLR0917  # what there is to draw
    folder: Path,
    campaign: Campaign,
    clustering: Clustering,
    noisy: Labels,
    elbow: tuple[Sequence[int], Sequence[float], int],
    points: Sequence[Point],
) -> None:
    """Write all pictures."""
    true, places = clustering.labels, flat_map(clustering.rows)
    drawn(folder / "elbow.svg", lambda axes: draw_elbow(axes, *elbow), (5.5, 3.4))
    drawn(folder / "figure1a.svg", lambda axes: draw_map(axes, places, true), (5.5, 5))
    drawn(folder / "figure1b.svg", lambda axes: draw_spending(axes, campaign, true, noisy), (9, 4), ncols=2,
          sharey=True)  # fmt: skip
    drawn(folder / "figure2.svg", lambda axes: draw_losses(axes, points, _PAPER), (11, 3.6),
          ncols=len(DELTAS), sharey=True)  # fmt: skip
    drawn(folder / "figure2-more.svg", lambda axes: draw_losses(axes, points, tuple(LINES)), (11, 4),
          ncols=len(DELTAS), sharey=True)  # fmt: skip
    deals = campaign.numbers["NumDealsPurchases"]
    drawn(folder / "figure3a.svg", lambda axes: draw_violins(axes, deals, true, noisy, "deals purchased"),
          (5.5, 3.6))  # fmt: skip
    drawn(folder / "figure3b.svg",
          lambda axes: draw_violins(axes, campaign.promotions, true, noisy, "promotions accepted"),
          (5.5, 3.6))  # fmt: skip
