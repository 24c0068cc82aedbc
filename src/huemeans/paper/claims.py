"""What the paper says of its data, and whether it holds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from huemeans.paper.campaign import Campaign
from huemeans.paper.clusters import PAPER_CLASSES, PAPER_NOISY, PAPER_TRUE, Clustering, Profile, profiles
from huemeans.paper.schemes import BALCAN, COLORED, EPSILONS, LEMMA, WHITE, Point

KNOWN_STEPS = [2240, 2216, 2212]
"""How many customers the paper's table has, and after each step of cleaning."""


@dataclass(frozen=True)
class Checked:
    """One statement of the paper, and what is found here."""

    statement: str
    holds: bool
    found: str


def class_claims(campaign: Campaign, clustering: Clustering, name: str) -> list[Checked]:
    """Check the classes in words: what they earn and spend, deals and promotions."""
    found = profiles(campaign, clustering.labels)
    checks = [
        Checked(
            f"{name}: class {k} is {income}-income, {spending}-spending",
            found[k].words == (income, spending),
            f"{found[k].words[0]} income ({found[k].income:,.0f}), {found[k].words[1]} spending "
            f"({found[k].spending:,.0f})",
        )
        for k, (income, spending) in enumerate(PAPER_CLASSES)
    ]
    described, seen = sorted(PAPER_CLASSES), sorted(profile.words for profile in found)
    words = "; ".join(f"class {k}: {' income, '.join(one.words)} spending" for k, one in enumerate(found))
    checks.append(Checked(f"{name}: the four classes occur, under whatever number", described == seen, words))
    deals = [profile.deals for profile in found]
    checks.append(
        Checked(
            f"{name}: class 0 is more likely to accept deals",
            int(np.argmax(deals)) == 0,
            "deals a head: " + ", ".join(f"{value:.2f}" for value in deals),
        )
    )
    return [*checks, _rich(found, name)]


def _rich(found: Sequence[Profile], name: str) -> Checked:
    """Check that those who earn and spend much take few deals and many promotions."""
    rich = [k for k, profile in enumerate(found) if profile.words == ("high", "high")]
    others = [k for k in range(len(found)) if k not in rich]
    holds = bool(rich) and all(
        found[k].deals < found[o].deals and found[k].promotions > found[o].promotions
        for k in rich
        for o in others
    )
    words = "; ".join(
        f"class {k}: {found[k].deals:.2f} deals, {found[k].promotions:.2f} promotions a head" for k in rich
    )
    statement = f"{name}: high income and high spending do not care for deals but accept promotions"
    return Checked(statement, holds, words or "no class earns and spends much")


def partnered_claim(campaign: Campaign) -> Checked:
    """Check whether customers with a partner accept more, which no clustering changes."""
    deals, promotions, partner = (
        campaign.numbers["NumDealsPurchases"],
        campaign.promotions,
        campaign.partnered,
    )
    a_head = [float(column[who].mean()) for column in (deals, promotions) for who in (partner, ~partner)]
    totals = [float(column[who].sum()) for column in (deals, promotions) for who in (partner, ~partner)]
    return Checked(
        "married customers accept deals and promotions in relatively higher numbers",
        a_head[0] > 1.05 * a_head[1] and a_head[2] > 1.05 * a_head[3],  # by a twentieth
        f"a head, with a partner and without: {a_head[0]:.2f} and {a_head[1]:.2f} deals, {a_head[2]:.3f} and "
        f"{a_head[3]:.3f} promotions; in all: {totals[0]:,.0f} and {totals[1]:,.0f} deals, {totals[2]:,.0f} "
        f"and {totals[3]:,.0f} promotions",
    )


def table_claims(campaign: Campaign, sizes: dict[str, list[int]], knees: tuple[int, int]) -> list[Checked]:
    """Check population, widths, sizes and the elbow."""
    exact = [name for name, found in sizes.items() if tuple(found) == PAPER_TRUE]
    literal = sizes["literal 28"]
    return [
        Checked("P = 2,212 customers", len(campaign) == 2212, f"{len(campaign):,} after cleaning"),  # noqa: PLR2004
        Checked(
            "d = 28 features give table 1",
            tuple(sorted(literal)) == tuple(sorted(PAPER_TRUE)),
            f"K-means on the 28 columns gives {literal}; exact: {', '.join(exact) or 'none'}, on 23 columns",
        ),
        Checked(
            "the elbow is at K = 4",
            knees[1] == 4,  # noqa: PLR2004
            f"by the chord rule K = {knees[1]} when the curve starts at K = 2, K = {knees[0]} from K = 1",
        ),
        Checked(
            "table 1 counts the same customers twice",
            sum(PAPER_TRUE) == sum(PAPER_NOISY),
            f"its true row adds up to {sum(PAPER_TRUE):,}, its noisy row to {sum(PAPER_NOISY):,}",
        ),
    ]


def loss_claims(points: Sequence[Point]) -> list[Checked]:
    """Check that color beats white noise and Balcan et al., and what the lemma keeps."""
    by = {(p.scheme, p.epsilon, p.delta): p for p in points}
    cells = [(p.epsilon, p.delta) for p in points if p.scheme == WHITE]
    ratios = [by[COLORED, *cell].loss / by[WHITE, *cell].loss for cell in cells]
    baseline = [by[COLORED, *cell].loss / by[BALCAN, *cell].loss for cell in cells]
    real = {p.epsilon: p.real_epsilon for p in points if p.scheme == LEMMA and p.delta == min(cells)[1]}
    shown = ", ".join(f"{real[epsilon]:,.3g} at {epsilon:g}" for epsilon in EPSILONS)
    return [
        Checked(
            "colored noise loses less than white noise at every (epsilon, delta)",
            max(ratios) < 1,
            f"{min(ratios):.2f} to {max(ratios):.2f} times the loss of white noise, at {len(cells)} pairs",
        ),
        Checked(
            "and less than Balcan et al.",
            max(baseline) < 1,
            f"at most {max(baseline):.2g} times theirs, which protects whatever the table, and this does not",
        ),
        Checked(
            "Lemma 4 keeps the epsilon that it is told",
            all(real[epsilon] <= epsilon for epsilon in EPSILONS),
            f"it really keeps, at delta {min(cells)[1]:g}: {shown}",
        ),
    ]


def sizes_by(labels: NDArray[np.intp], k: int) -> list[int]:
    """Return how many customers each class has."""
    return [int(size) for size in np.bincount(labels, minlength=k)]
