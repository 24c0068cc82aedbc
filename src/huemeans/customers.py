"""A made-up table of a shop's customers: skewed, correlated, with words and missing cells."""

import csv
from pathlib import Path
from typing import Final

import numpy as np

FEATURES: Final = {
    "age": (18, 95),
    "income_thousand": (0, 250),
    "children": (0, 5),
    "months_as_customer": (0, 120),
    "days_since_last_visit": (0, 100),
    "spent_on_wine": (0, 2000),
    "spent_on_food": (0, 2500),
    "spent_on_sweets": (0, 400),
    "visits_to_website": (0, 25),
    "purchases_in_store": (0, 20),
    "purchases_online": (0, 25),
    "campaigns_accepted": (0, 5),
}
"""Public bounds of the numbers."""

HOUSEHOLDS: Final = ("single", "couple", "family", "widowed")
"""The public list of words."""

_KINDS: Final = np.array(
    [
        # age, income, children, wine, food, sweets, website, store, online, campaigns
        [35, 34, 1.4, 40, 60, 12, 7.5, 3.2, 2.2, 0.1],
        [52, 58, 1.3, 330, 210, 35, 5.8, 7.5, 6.2, 0.3],
        [57, 78, 0.1, 620, 900, 110, 2.4, 9.0, 5.0, 0.7],
        [44, 92, 0.2, 1050, 620, 60, 4.5, 6.0, 8.5, 2.1],
    ]
)
_SHARES: Final = (0.46, 0.29, 0.17, 0.08)
_BY_KIND: Final = np.array([[0.5, 0.2, 0.28, 0.02], [0.1, 0.25, 0.6, 0.05],
                            [0.15, 0.6, 0.05, 0.2], [0.4, 0.5, 0.05, 0.05]])  # fmt: skip


def write_customers(path: Path, rows: int, seed: int = 7) -> None:
    """Write the table as CSV."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(len(_SHARES), size=rows, p=_SHARES)
    age, income, children, wine, food, sweets, website, store, online, campaigns = _KINDS[kind].T
    wealth = rng.normal(size=rows)
    above = rng.random(rows)[:, None] > np.cumsum(_BY_KIND, axis=1)[kind]
    household = [HOUSEHOLDS[word] for word in np.minimum(above.sum(axis=1), len(HOUSEHOLDS) - 1)]
    columns = {
        "age": np.rint(np.clip(age + 9 * rng.normal(size=rows), 18, 95)),
        "income_thousand": np.round(income * np.exp(0.18 * wealth + 0.08 * rng.normal(size=rows)), 1),
        "children": rng.poisson(children),
        "months_as_customer": np.rint(np.clip(20 + 0.6 * age + 8 * rng.normal(size=rows), 0, 120)),
        "days_since_last_visit": np.rint(np.minimum(rng.gamma(2, 60 / (2 + website)), 100)),
        "spent_on_wine": np.rint(wine * np.exp(0.35 * wealth + 0.3 * rng.normal(size=rows))),
        "spent_on_food": np.rint(food * np.exp(0.3 * wealth + 0.3 * rng.normal(size=rows))),
        "spent_on_sweets": np.rint(sweets * rng.gamma(2, 0.5, size=rows)),
        "visits_to_website": rng.poisson(website),
        "purchases_in_store": rng.poisson(store),
        "purchases_online": rng.poisson(online),
        "campaigns_accepted": np.minimum(rng.poisson(campaigns), 5),
    }  # fmt: skip
    unknown = rng.random(rows) < 0.01  # noqa: PLR2004  # some did not say
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow([*columns, "household"])
        for at in range(rows):
            cells = [f"{values[at]:g}" for values in columns.values()]
            cells[1] = "" if unknown[at] else cells[1]
            table.writerow([*cells, household[at]])


def public_facts() -> str:
    """Return bounds and words as TOML, as ``huemeans fit --bounds`` reads it."""
    lines = ["# Public facts about the columns: known before anyone looked at a row."]
    lines += [f"{name} = [{low}, {high}]" for name, (low, high) in FEATURES.items()]
    words = ", ".join(f'"{word}"' for word in HOUSEHOLDS)
    return "\n".join([*lines, f"household = [{words}]"]) + "\n"
