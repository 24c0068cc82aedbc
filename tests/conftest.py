"""Settings and tables shared by all tests."""

import csv
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from huemeans.testing import seeded_noise

settings.register_profile(
    "huemeans", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("huemeans")

MARKETING = Path(__file__).parents[2] / "shared" / "data" / "marketing_campaign.csv"


def standardized(columns):
    """Return columns with mean 0 and standard deviation 1; constant ones become zero."""
    table = np.column_stack(columns).astype(float)
    deviation = table.std(axis=0)
    return (table - table.mean(axis=0)) / np.where(deviation > 0, deviation, 1)


@pytest.fixture
def steady():
    """Draw the same noise in each run: what is tested is accuracy, which has no sharp bound."""
    with seeded_noise(20):
        yield


@pytest.fixture(scope="session")
def customers():
    """Return a generated table of the paper's shape, 2,212 x 28: skewed, correlated, flags, two constants."""
    rng = np.random.default_rng(20230607)
    n = 2212
    wealth, family, taste = rng.normal(size=(3, n))
    spending = [np.exp(wealth * (0.3 + 0.1 * j) + 0.4 * rng.normal(size=n)) for j in range(6)]
    counts = [rng.poisson(np.exp(0.5 + 0.3 * wealth + 0.2 * taste)) for _ in range(6)]
    flags = [rng.random(n) < 0.05 + 0.1 * (wealth > 1) for _ in range(7)]
    others = [
        np.exp(10.8 + 0.4 * wealth),
        45 + 12 * rng.normal(size=n),
        rng.integers(0, 5, size=n),
        rng.integers(0, 8, size=n),
        (family > 0.2).astype(int) + (family > 1.5),
        rng.integers(0, 100, size=n),
        rng.integers(0, 700, size=n),
    ]
    constants = [np.full(n, 3), np.full(n, 11)]
    return standardized([*others, *spending, *counts, *flags, *constants])


@pytest.fixture(scope="session")
def marketing_file():
    """Return the path of the paper's own table, where the file is at hand; it is an extra."""
    if not MARKETING.exists():
        pytest.skip(f"an extra: {MARKETING} is not there")
    return MARKETING


@pytest.fixture(scope="session")
def marketing(marketing_file):
    """Return the paper's own table, cleaned to 2,212 x 28."""
    with marketing_file.open() as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["Income"]]
    rows = [row for row in rows if 2021 - int(row["Year_Birth"]) < 90 and float(row["Income"]) < 600_000]
    return standardized([encoded(name, [row[name] for row in rows]) for name in rows[0] if name != "ID"])


def encoded(name, values):
    """Return one column of the paper's table as numbers."""
    if name in ("Education", "Marital_Status"):
        words = sorted(set(values))
        return [words.index(value) for value in values]
    if name == "Dt_Customer":
        return [date(int(v[6:]), int(v[3:5]), int(v[:2])).toordinal() for v in values]
    return [float(value) for value in values]
