"""The whole numerical section: clusters, noise, figures, tables, and what holds of what the paper says."""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np
from jinja2 import Environment, StrictUndefined
from numpy.typing import NDArray

from huemeans.baselines.common import nearest
from huemeans.paper.campaign import Campaign, cleaned
from huemeans.paper.claims import (
    KNOWN_STEPS,
    Checked,
    class_claims,
    loss_claims,
    partnered_claim,
    sizes_by,
    table_claims,
)
from huemeans.paper.clusters import (
    CLUSTERS,
    PAPER_NOISY,
    PAPER_TRUE,
    RECIPES,
    Clustering,
    clustered,
    elbow_curve,
    knee,
    profiles,
)
from huemeans.paper.figures import draw_all
from huemeans.paper.schemes import (
    BALCAN,
    COLORED,
    EPSILONS,
    EXACT,
    LEMMA,
    PRIVATE,
    WHITE,
    Point,
    Shapes,
    figure_2,
    limits,
    noisy_centers,
    shapes_of,
)

NOISY: Final = (0.2, 1e-6)
"""The epsilon and delta of noisy figures: about as many customers move as in the paper's own noisy row."""

_KS: Final = range(1, 11)


@dataclass(frozen=True, eq=False)
class Section:
    """All that was found."""

    steps: list[tuple[str, int]]
    """The number of customers after each step of cleaning."""

    clusterings: list[Clustering]
    noisy: list[NDArray[np.intp]]
    """The nearest noisy centroid of each customer, per clustering."""

    knees: tuple[int, int]
    shapes: Shapes
    points: list[Point]
    claims: list[Checked]

    @property
    def table_1(self) -> list[dict[str, Any]]:
        """Return table 1 beside what each recipe gives."""
        return [
            {
                "table": clustering.recipe.name,
                "cluster": k,
                "paper_true": PAPER_TRUE[k],
                "true": clustering.sizes[k],
                "paper_noisy": PAPER_NOISY[k],
                "noisy": sizes_by(noisy, CLUSTERS)[k],
            }
            for clustering, noisy in zip(self.clusterings, self.noisy, strict=True)
            for k in range(CLUSTERS)
        ]


def run(  # noqa: PLR0917  # what a command is told
    campaign: Campaign, folder: Path, repeats: int, workers: int, say: Callable[[str], None], source: str
) -> Section:
    """Run all of it and write ``paper.html``, figures and tables into a folder."""
    steps = cleaned(campaign)
    people = steps[-1][1]
    say("Clustering the table by three recipes.")
    clusterings = [clustered(people, recipe) for recipe in RECIPES]
    main = clusterings[0]
    losses = elbow_curve(main.rows, _KS)
    knees = knee(_KS, losses), knee(_KS[1:], losses[1:])
    noisy = [_noisy_labels(clustering) for clustering in clusterings]
    say(f"Drawing noise: {repeats} repetitions of every scheme.")
    points = figure_2(main, repeats, workers)
    sizes = {clustering.recipe.name: clustering.sizes for clustering in clusterings}
    claims = table_claims(people, sizes, knees) + loss_claims(points)
    for clustering in clusterings[::2]:  # of R1 and R2 nearly all customers are the same
        claims += class_claims(people, clustering, clustering.recipe.name)
    claims.append(partnered_claim(people))
    section = Section(
        [(words, len(table)) for words, table in steps],
        clusterings,
        noisy,
        knees,
        shapes_of(main),
        points,
        claims,
    )
    say("Drawing the figures.")
    draw_all(folder, people, main, noisy[0], (list(_KS), losses, knees[1]), points)
    _write_csv(folder / "tables.csv", section.table_1)
    _write_csv(folder / "figure2.csv", [vars(point) for point in points])
    page = _page(section, people, repeats, source)
    (folder / "paper.html").write_text(page, encoding="utf-8")
    return section


def _noisy_labels(clustering: Clustering) -> NDArray[np.intp]:
    """Return the nearest centroid of each customer after corrected colored noise."""
    shapes = shapes_of(clustering)
    m, _ = limits(COLORED, *NOISY, shapes.lemma_factor)
    [centers] = noisy_centers(clustering.centers, shapes.roots[COLORED], m, 1, seed=1)
    return nearest(clustering.rows, centers)


def _write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _page(section: Section, people: Campaign, repeats: int, source: str) -> str:
    template = files("huemeans.paper").joinpath("page.html").read_text(encoding="utf-8")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    main, traces = section.clusterings[0], section.shapes.traces
    by = {(p.scheme, p.epsilon, p.delta): p for p in section.points}
    delta = NOISY[1]
    return environment.from_string(template).render(
        source=source,
        own=[count for _, count in section.steps] == KNOWN_STEPS,
        repeats=repeats,
        steps=section.steps,
        recipes=[
            {
                "name": clustering.recipe.name,
                "words": clustering.recipe.words,
                "sizes": clustering.sizes,
                "noisy": sizes_by(noisy, CLUSTERS),
                "exact": tuple(clustering.sizes) == PAPER_TRUE,
                "squares": f"{clustering.loss * len(clustering.rows):,.4f}",
                "columns": clustering.rows.shape[1],
            }
            for clustering, noisy in zip(section.clusterings, section.noisy, strict=True)
        ],
        paper_true=PAPER_TRUE,
        paper_noisy=PAPER_NOISY,
        paper_noisy_sum=sum(PAPER_NOISY),
        paper_true_sum=sum(PAPER_TRUE),
        noisy_epsilon=f"{NOISY[0]:g}",
        noisy_delta=f"{NOISY[1]:g}",
        knees=section.knees,
        profiles=list(enumerate(profiles(people, main.labels))),
        claims=section.claims,
        white_factor=f"{traces[WHITE] / traces[COLORED]:.1f}",
        lemma_factor=f"{section.shapes.lemma_factor:,.0f}",
        epsilons=[f"{epsilon:g}" for epsilon in EPSILONS],
        delta=f"{delta:g}",
        rows=[
            (
                scheme,
                [
                    (
                        f"{by[scheme, epsilon, delta].loss:.3g}",
                        f"{by[scheme, epsilon, delta].real_epsilon:.3g}",
                    )
                    for epsilon in EPSILONS
                ],
            )
            for scheme in (WHITE, COLORED, EXACT, LEMMA, BALCAN, PRIVATE)
        ],
    )
