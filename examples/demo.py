"""Publish the average customer of a generated table, once with white noise and once with colored noise.

Both releases are truly (epsilon, delta)-differentially private, with the same public bounds and the same
budget.  All that differs is the shape of the noise on the sum: a ball around the box of possible rows, or
the ellipsoid of least trace around it.  The gain shown comes from features of different units; had every
feature been scaled to the same range first, the two would be the same here.
"""

from fractions import Fraction
from pathlib import Path

import matplotlib as mpl
import numpy as np

from huemeans import Accountant, Budget, Domain, Guarantee, PrivacyUnit
from huemeans.budget import scale_for
from huemeans.discretization import Draws, largest_mu
from huemeans.entropy import open_source
from huemeans.lattice import RADIUS, Whitening
from huemeans.noise import noisy_sum

mpl.use("Agg")
import matplotlib.pyplot as plt

EPSILON, DELTA, ROWS, REPEATS = 1.0, 1e-6, 2000, 200
DOMAIN = Domain(
    [0, 0, 18, 0], [200_000, 5_000, 100, 30], names=["income", "spending", "age", "visits per month"]
)
OUT = Path("out/demo")


def customers(rng: np.random.Generator) -> np.ndarray:
    """Make a table whose features differ in size and move together."""
    wealth = rng.normal(size=ROWS)
    return np.column_stack(
        [
            60_000 * np.exp(0.4 * wealth),
            900 * np.exp(0.6 * wealth + 0.3 * rng.normal(size=ROWS)),
            np.clip(45 + 4 * wealth + 12 * rng.normal(size=ROWS), 18, 100),
            rng.poisson(4, ROWS),
        ]
    )


def white(half_widths: np.ndarray) -> np.ndarray:
    """Return the ball around a box, as {v : v' S^-1 v <= 1}."""
    return np.eye(len(half_widths)) * (half_widths**2).sum()


def colored(half_widths: np.ndarray) -> np.ndarray:
    """Return the ellipsoid of least trace around a box."""
    return np.diag(half_widths) * half_widths.sum()


def release_mean(rows: np.ndarray, shape: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a private mean in raw units and the standard deviation of its noise, both publishable."""
    draws = Draws(5, Fraction(5, 2**40))
    mu = largest_mu(EPSILON, DELTA, draws)
    budget = Budget(mu, {"sum": 950_000, "count": 50_000})
    accountant, bits = Accountant(budget.mu_squared, draws), open_source()
    whitening = Whitening.from_shape(shape, DOMAIN.step, radius=1.0)
    grid, kept = DOMAIN.to_grid(rows)
    parts = {"sum": whitening.contribution(grid)[kept].sum(axis=0), "count": np.array([kept.sum() * RADIUS])}
    noisy, scales = {}, {}
    for part, total in parts.items():
        scales[part] = scale_for(RADIUS**2, budget.part_squared(part))
        noisy[part] = noisy_sum(
            total,
            part=part,
            scale=scales[part],
            sensitivity_squared=RADIUS**2,
            accountant=accountant,
            bits=bits,
        )
    count = max(noisy["count"][0] / RADIUS, 1.0)
    mean = whitening.color(noisy["sum"]) / count
    variance = (
        np.diag(whitening.covariance(scales["sum"])) + mean**2 * (scales["count"] / RADIUS) ** 2
    ) / count**2
    return DOMAIN.to_raw(mean), np.sqrt(variance) * DOMAIN.step


def plot(errors: dict[str, np.ndarray], path: Path) -> None:
    """Draw the error of each feature, as a share of its public range, for both noises."""
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    places = np.arange(DOMAIN.n_features)
    for shift, (name, color) in zip((-0.2, 0.2), (("white", "#9aa0a6"), ("colored", "#c2410c")), strict=True):
        share = 100 * errors[name] / (DOMAIN.upper - DOMAIN.lower)
        bars = axes.bar(places + shift, share, 0.38, color=color, label=f"{name} noise")
        axes.bar_label(bars, fmt="%.2g %%", fontsize=8, padding=2)
    axes.set_yscale("log")
    axes.set_xticks(places, DOMAIN.names)
    axes.set_ylabel("typical error, % of public range")
    axes.set_title(f"Average of {ROWS:,} customers at epsilon = {EPSILON:g}, delta = {DELTA:g}", fontsize=10)
    axes.margins(y=0.15)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Release, measure over many repetitions, draw and say where the picture lies."""
    rows = customers(np.random.default_rng(2024))
    half_widths = (DOMAIN.upper - DOMAIN.lower) / 2
    truth, errors = rows.mean(axis=0), {}
    print(Guarantee("dp", EPSILON, DELTA, PrivacyUnit("add-remove")), end="\n\n")
    for name, shape in (("white", white(half_widths)), ("colored", colored(half_widths))):
        released = [release_mean(rows, shape) for _ in range(REPEATS)]
        errors[name] = np.sqrt(np.mean([(mean - truth) ** 2 for mean, _ in released], axis=0))
        mean, deviation = released[0]
        print(f"one release with {name} noise (value +- standard deviation of the noise)")
        for feature, value, bar in zip(DOMAIN.names, mean, deviation, strict=True):
            print(f"  {feature:<18}{value:>12,.2f}  +- {bar:,.2f}")
    print("\nThe gain comes from the different units of the features: colored noise needs no scaling first.")
    print(f"error over {REPEATS} releases, white / colored:")
    for feature, ratio in zip(DOMAIN.names, errors["white"] / errors["colored"], strict=True):
        print(f"  {feature:<18}{ratio:>8.2f}")
    OUT.mkdir(parents=True, exist_ok=True)
    plot(errors, OUT / "colored-vs-white.png")
    print(f"\nThe picture lies in {(OUT / 'colored-vs-white.png').resolve()}")


if __name__ == "__main__":
    main()
