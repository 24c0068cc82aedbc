"""The table of the paper's experiment: 2,240 customers of a marketing campaign, read, checked and cleaned.

The file is "Customer Personality Analysis", also known as "Marketing Campaign", of Kaggle; copies differ in
the separator and in how they write dates.  Without it, ``made_up`` gives a table of the same kind.
"""

import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from huemeans.errors import InvalidArgument

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

WORDS: Final = ("Education", "Marital_Status")
SPENDING: Final = (
    "MntWines",
    "MntFruits",
    "MntMeatProducts",
    "MntFishProducts",
    "MntSweetProducts",
    "MntGoldProds",
)
CAMPAIGNS: Final = ("AcceptedCmp1", "AcceptedCmp2", "AcceptedCmp3", "AcceptedCmp4", "AcceptedCmp5")
COLUMNS: Final = (
    "ID",
    "Year_Birth",
    *WORDS,
    "Income",
    "Kidhome",
    "Teenhome",
    "Dt_Customer",
    "Recency",
    *SPENDING,
    "NumDealsPurchases",
    "NumWebPurchases",
    "NumCatalogPurchases",
    "NumStorePurchases",
    "NumWebVisitsMonth",
    "AcceptedCmp3",
    "AcceptedCmp4",
    "AcceptedCmp5",
    "AcceptedCmp1",
    "AcceptedCmp2",
    "Complain",
    "Z_CostContact",
    "Z_Revenue",
    "Response",
)

WHERE: Final = (
    "It is the table 'Customer Personality Analysis' (marketing_campaign.csv) of Kaggle: "
    "https://www.kaggle.com/datasets/imakash3011/customer-personality-analysis. "
    "Without it, 'huemeans paper --synthetic' shows the same on a made-up table."
)

_THIS_YEAR: Final = 2021  # of the public notebook that the recipe comes from
_OLDEST: Final = 90
_RICHEST: Final = 600_000
_MOST_BYTES: Final = 64 * 2**20
_SWAPPED: Final = 12  # the last day that can pass for a month
_ALONE: Final = ("Absurd", "Alone", "Divorced", "Single", "Widow", "YOLO")
_LEVELS: Final = {"Basic": 0, "2n Cycle": 0, "Graduation": 1, "Master": 2, "PhD": 2}


@dataclass(frozen=True, eq=False)
class Campaign:
    """Customers: words, dates and numbers by column."""

    words: dict[str, tuple[str, ...]]
    dates: tuple[date, ...]
    numbers: dict[str, Floats]
    """NaN where nothing is said."""

    def __len__(self) -> int:
        """Count the customers."""
        return len(self.dates)

    def only(self, kept: NDArray[np.bool_]) -> "Campaign":
        """Return some of the customers."""
        at = np.flatnonzero(kept)
        return Campaign(
            {name: tuple(column[i] for i in at) for name, column in self.words.items()},
            tuple(self.dates[i] for i in at),
            {name: column[kept] for name, column in self.numbers.items()},
        )

    @property
    def spent(self) -> Floats:
        """What a customer spent on all products."""
        return np.asarray(sum(self.numbers[name] for name in SPENDING))

    @property
    def promotions(self) -> Floats:
        """How many of five promotions a customer accepted."""
        return np.asarray(sum(self.numbers[name] for name in CAMPAIGNS))

    @property
    def partnered(self) -> NDArray[np.bool_]:
        """Whether a customer lives with a partner."""
        return np.array([word not in _ALONE for word in self.words["Marital_Status"]])


def cleaned(campaign: Campaign) -> list[tuple[str, Campaign]]:
    """Return the table after each step of cleaning, and in words what is left."""
    known = campaign.only(~np.isnan(campaign.numbers["Income"]))
    age = _THIS_YEAR - known.numbers["Year_Birth"]
    usual = known.only((age < _OLDEST) & (known.numbers["Income"] < _RICHEST))
    return [
        ("in the file", campaign),
        ("with a known income", known),
        ("without ages of 90 and incomes of 600,000 and more", usual),
    ]


def literal(campaign: Campaign) -> Floats:
    """Return the paper's 28 columns, words and dates as numbers, standardized; constant ones are zero."""
    coded = {
        name: _ranks(campaign.words[name])
        if name in WORDS
        else _days(campaign.dates)
        if name == "Dt_Customer"
        else campaign.numbers[name]
        for name in COLUMNS
        if name != "ID"
    }
    return standardized(list(coded.values()))


def engineered(campaign: Campaign, *, levels: bool) -> Floats:
    """Return the 23 columns of the public notebook, standardized.

    Education is coded by the alphabet or, with ``levels``, in three levels.  Dates are read month first
    whenever that is possible, as old versions of pandas did with them.
    """
    education = _ranks(campaign.words["Education"])
    if levels:
        education = np.array([float(_LEVELS.get(word, 1)) for word in campaign.words["Education"]])
    numbers, partner = campaign.numbers, campaign.partnered.astype(np.float64)
    days = _days(tuple(_month_first(day) for day in campaign.dates))
    children = numbers["Kidhome"] + numbers["Teenhome"]
    kept = ("Income", "Kidhome", "Teenhome", "Recency", *SPENDING, *COLUMNS[15:20])
    columns = [education, *(numbers[name] for name in kept), days.max() - days]
    columns += [_THIS_YEAR - numbers["Year_Birth"], campaign.spent, partner, children]
    columns += [partner + 1 + children, (children > 0).astype(np.float64)]
    return standardized(columns)


def standardized(columns: Sequence[Floats]) -> Floats:
    """Return columns with mean 0 and standard deviation 1; constant ones become zero."""
    table = np.column_stack(columns)
    deviation = table.std(axis=0)
    return np.asarray((table - table.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))


def read_campaign(path: str) -> Campaign:
    """Read the file: separated by tabs, semicolons or commas, dates as dd-mm-yyyy or yyyy-mm-dd."""
    place = Path(path)
    try:
        if place.stat().st_size > _MOST_BYTES:
            raise InvalidArgument(f"{path} is too large to be the table of the paper. {WHERE}")
        text = place.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be read: {error.strerror}. {WHERE}") from None
    except UnicodeDecodeError:
        raise InvalidArgument(f"{path} is no text in UTF-8. {WHERE}") from None
    header = text.split("\n", 1)[0]
    separator = max("\t;,", key=header.count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    names = [name.strip() for name in reader.fieldnames or []]
    missing = [name for name in COLUMNS if name not in names]
    if len(set(names)) < len(names):
        raise InvalidArgument(f"{path} is not the table of the paper: it has a column twice. {WHERE}")
    if missing:
        shown = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")  # noqa: PLR2004
        raise InvalidArgument(f"{path} is not the table of the paper: it has no column {shown}. {WHERE}")
    reader.fieldnames = names
    rows = [row for row in reader if any(value and str(value).strip() for value in row.values())]
    try:
        return _campaign([{name: (row[name] or "").strip() for name in COLUMNS} for row in rows])
    except ValueError as error:
        raise InvalidArgument(f"{path} is not the table of the paper: {error}. {WHERE}") from None


def _campaign(rows: Sequence[dict[str, str]]) -> Campaign:
    if len(rows) < 100:  # noqa: PLR2004
        raise ValueError("it has hardly any rows")
    words = {name: tuple(row[name] for row in rows) for name in WORDS}
    for name, known in (("Education", set(_LEVELS)), ("Marital_Status", {*_ALONE, "Married", "Together"})):
        if not set(words[name]) <= known:
            raise ValueError(f"its column {name} has words other than {', '.join(sorted(known))}")
    numbers = {
        name: np.array([_number(row[name], name) for row in rows])
        for name in COLUMNS
        if name not in (*WORDS, "Dt_Customer")
    }
    return Campaign(words, tuple(_day(row["Dt_Customer"]) for row in rows), numbers)


def _number(text: str, name: str) -> float:
    if not text and name == "Income":
        return math.nan
    plain = text.removeprefix("$")
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", plain):  # thousands are set apart
        plain = plain.replace(",", "")
    try:
        value = float(plain)
    except ValueError:
        value = math.inf
    if not math.isfinite(value):
        raise ValueError(f"its column {name} has cells that are no numbers")
    return value


def _day(text: str) -> date:
    parts = text.replace("/", "-").replace(".", "-").split("-")
    try:
        first, second, third = (int(part) for part in parts)
        return date(first, second, third) if len(parts[0]) == 4 else date(third, second, first)  # noqa: PLR2004
    except ValueError:
        raise ValueError("its column Dt_Customer has cells that are no dates like 04-09-2012") from None


def _month_first(day: date) -> date:
    return date(day.year, day.day, day.month) if day.day <= _SWAPPED else day


def _days(dates: Sequence[date]) -> Floats:
    return np.array([float(day.toordinal()) for day in dates])


def _ranks(words: Sequence[str]) -> Floats:
    return np.unique(np.array(words), return_inverse=True)[1].astype(np.float64)


def made_up(rows: int = 2240, seed: int = 20_230_607) -> Campaign:
    """Return a made-up table of the same columns: four kinds of customers, one income of ninety missing."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(4, size=rows, p=(0.27, 0.23, 0.23, 0.27))

    def by_kind(*means: float) -> Any:
        return np.array(means)[kind]

    income = by_kind(61_700, 76_100, 42_700, 30_100) * np.exp(0.2 * rng.normal(size=rows))
    taste = np.exp(0.4 * rng.normal(size=rows)) * by_kind(0.63, 1.0, 0.1, 0.08)
    shares = dict(zip(SPENDING, (620, 55, 470, 80, 55, 85), strict=True))
    bought = {name: np.rint(most * taste * rng.gamma(2, 0.5, size=rows)) for name, most in shares.items()}
    counts = {
        "NumDealsPurchases": by_kind(3.5, 1.1, 2.8, 1.9),
        "NumWebPurchases": by_kind(6.5, 5.2, 2.7, 2.2),
        "NumCatalogPurchases": by_kind(3.4, 6.0, 0.7, 0.5),
        "NumStorePurchases": by_kind(7.9, 8.3, 3.5, 3.1),
        "NumWebVisitsMonth": by_kind(5.4, 2.6, 5.8, 6.9),
    }
    accepted = {name: rng.random(rows) < by_kind(0.06, 0.15, 0.02, 0.02) for name in CAMPAIGNS}
    age = (by_kind(55.5, 52.9, 56.7, 44.3) + 10 * rng.normal(size=rows)).clip(18, 85)
    others = {
        "ID": np.arange(1, rows + 1),
        "Year_Birth": np.rint(2021 - age),
        "Income": np.where(rng.random(rows) < 1 / 90, np.nan, np.rint(income)),
        "Kidhome": rng.binomial(2, by_kind(0.09, 0.01, 0.41, 0.37)),
        "Teenhome": rng.binomial(2, by_kind(0.48, 0.02, 0.51, 0.02)),
        "Recency": rng.integers(0, 100, size=rows),
        "Complain": rng.random(rows) < 0.01,  # noqa: PLR2004
        "Z_CostContact": np.full(rows, 3),
        "Z_Revenue": np.full(rows, 11),
        "Response": rng.random(rows) < by_kind(0.13, 0.28, 0.08, 0.12),
    }
    numbers = others | bought | {name: rng.poisson(mean) for name, mean in counts.items()} | accepted
    education = rng.choice(list(_LEVELS), size=rows, p=(0.02, 0.09, 0.5, 0.17, 0.22))
    marital = rng.choice(["Divorced", "Married", "Single", "Together", "Widow"], size=rows,
                         p=(0.1, 0.39, 0.22, 0.26, 0.03))  # fmt: skip
    first = date(2012, 7, 30).toordinal()
    dates = tuple(date.fromordinal(first + int(days)) for days in rng.integers(0, 700, size=rows))
    return Campaign(
        {"Education": tuple(map(str, education)), "Marital_Status": tuple(map(str, marital))},
        dates,
        {name: np.asarray(column, dtype=np.float64) for name, column in numbers.items()},
    )
