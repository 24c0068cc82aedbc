"""Publish what kinds of customers a shop has: private K-means centroids with error bars.

The table is made up.  Its clusters are released twice with the same bounds and the same budget, with colored
and with white noise, and the errors of many releases are compared.
"""

import csv
from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.cluster import KMeans

from huemeans import PrivateKMeans

mpl.use("Agg")
import matplotlib.pyplot as plt

ROWS, EPSILON, DELTA, REPEATS = 20_000, 1.0, 1e-6, 20
BOUNDS = {
    "income, thousand": (0, 200),
    "spending, thousand": (0, 60),
    "visits a month": (0, 30),
    "deals a year": (0, 40),
    "share bought online, %": (0, 100),
    "returns a year": (0, 20),
}
KINDS = np.array(
    [[32, 2, 3, 6, 25, 1.0], [55, 12, 8, 15, 40, 2.5], [90, 30, 6, 4, 65, 4.0], [70, 8, 2, 3, 85, 1.5]]
)
OUT = Path("out/demo")


def customers(rng: np.random.Generator) -> np.ndarray:
    """Make four kinds of customers whose features differ in size and move together."""
    kind = rng.choice(4, size=ROWS, p=[0.4, 0.3, 0.1, 0.2])
    wealth = rng.normal(size=(ROWS, 1))
    sway = wealth * [8, 2.5, 0.3, -0.5, 2, 0.2]
    return KINDS[kind] + sway + rng.normal(size=(ROWS, 6)) * [6, 1.5, 1.2, 2, 7, 0.7]


def fit(rows: np.ndarray, noise: str, seed: int) -> PrivateKMeans:
    """Release four centroids."""
    bounds = np.array(list(BOUNDS.values())).T
    return PrivateKMeans(4, epsilon=EPSILON, delta=DELTA, bounds=bounds, noise=noise, random_state=seed).fit(
        rows
    )


def excess_loss(rows: np.ndarray, noise: str, base: float) -> float:
    """Return by how many percent releases lose more than non-private K-means, on average."""
    losses = []
    for seed in range(REPEATS):
        centers = fit(rows, noise, seed).cluster_centers_
        squares = ((rows[:, None] - centers) ** 2).sum(axis=2)
        losses.append(squares.min(axis=1).sum())
    return 100 * (float(np.mean(losses)) / base - 1)


def write_table(model: PrivateKMeans, deviations: np.ndarray, path: Path) -> None:
    """Write the centroids with the standard deviations of their noise."""
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["size", *(f"{name}{end}" for name in BOUNDS for end in ("", " (sd of noise)"))])
        for size, center, deviation in zip(
            model.cluster_sizes_, model.cluster_centers_, deviations, strict=True
        ):
            cells = np.stack([center, deviation], axis=1).ravel()
            table.writerow([round(float(size)), *(f"{float(cell):.4g}" for cell in cells)])


def draw(model: PrivateKMeans, deviations: np.ndarray, path: Path) -> None:
    """Draw each feature's centroids with error bars, on its public range."""
    figure, axes = plt.subplots(2, 3, figsize=(9, 4.8), layout="constrained")
    order = np.argsort(model.cluster_centers_[:, 0])
    colors = ["#1d4e89", "#00916e", "#e4572e", "#7b4b94"]
    for axis, (name, (low, high)), feature in zip(axes.flat, BOUNDS.items(), range(6), strict=True):
        for place, cluster in enumerate(order):
            value, error = model.cluster_centers_[cluster, feature], 2 * deviations[cluster, feature]
            axis.errorbar(value, place, xerr=error, fmt="o", color=colors[place], capsize=3, ms=6)
        axis.set(xlim=(low, high), ylim=(-0.6, 3.6), yticks=[], title=name)
        axis.spines[["top", "right", "left"]].set_visible(False)
    figure.suptitle(
        f"Four kinds of customers, epsilon {EPSILON:g}, delta {DELTA:g}; bars: two sd of the noise"
    )
    figure.savefig(path, dpi=150)


def main() -> None:
    """Release, compare, write and say where the results lie."""
    rows = customers(np.random.default_rng(2024))
    base = KMeans(4, n_init=10, random_state=0).fit(rows).inertia_
    model = fit(rows, "colored", 0)
    deviations = np.sqrt(np.diagonal(model.noise_covariance_, axis1=1, axis2=2))
    print(model.guarantee_, end="\n\n")
    print("size  " + "".join(f"{name:>26}" for name in BOUNDS))
    for cluster in np.argsort(-model.cluster_sizes_):
        cells = zip(model.cluster_centers_[cluster], deviations[cluster], strict=True)
        figures = "".join(f"{f'{value:.1f} ± {deviation:.2f}':>26}" for value, deviation in cells)
        print(f"{model.cluster_sizes_[cluster]:<6.0f}{figures}")
    print(f"\nloss above non-private K-means, mean of {REPEATS} releases:")
    for noise in ("colored", "white"):
        print(f"  {noise:<8}{excess_loss(rows, noise, base):6.2f} %")
    OUT.mkdir(parents=True, exist_ok=True)
    write_table(model, deviations, OUT / "centroids.csv")
    draw(model, deviations, OUT / "centroids.png")
    print(f"\nThe results lie in {OUT.resolve()}: centroids.csv, centroids.png")


if __name__ == "__main__":
    main()
