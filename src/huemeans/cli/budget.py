"""``huemeans budget``: privacy budgets that outlive the process."""

from typing import TYPE_CHECKING, Any

import click

from huemeans.cli.common import COUNT, DELTA, EPSILON, give, json_option, neighbors_option, say

if TYPE_CHECKING:
    from huemeans.ledger import Balance


@click.group()
def budget() -> None:
    """Keep the privacy budgets of data sets."""


@budget.command()
@click.argument("ledger", type=click.Path(dir_okay=False))
@click.option("--dataset", required=True, metavar="NAME")
@click.option(
    "--epsilon",
    type=EPSILON,
    required=True,
    help="For all releases of the data set together.",
)
@click.option("--delta", type=DELTA, required=True)
@neighbors_option
@click.option("--rows-per-unit", type=COUNT, default=1, show_default=True, help="Rows of one person.")
@json_option
def init(
    ledger: str,
    dataset: str,
    *,
    epsilon: float,
    delta: float,
    neighbors: Any,
    rows_per_unit: int,
    as_json: bool,
) -> None:
    """Give a data set its budget, once and for all."""
    from huemeans.guarantee import PrivacyUnit
    from huemeans.ledger import Ledger

    book = Ledger(ledger)
    book.open_dataset(dataset, epsilon=epsilon, delta=delta, unit=PrivacyUnit(neighbors, rows_per_unit))
    _show([book.balance(dataset)], as_json=as_json)


@budget.command()
@click.argument("ledger", type=click.Path(dir_okay=False))
@json_option
def show(ledger: str, *, as_json: bool) -> None:
    """Check every entry, and say what each data set has left."""
    from huemeans.ledger import Ledger

    _show(Ledger(ledger).balances(), as_json=as_json)


@budget.command()
@click.argument("ledger", type=click.Path(dir_okay=False))
@json_option
def history(ledger: str, *, as_json: bool) -> None:
    """Check every entry, and list them."""
    from huemeans.ledger import Ledger

    entries = [entry for entry in Ledger(ledger).entries() if entry.kind != "ledger"]
    rows = [
        {"entry": entry.number, "kind": entry.kind, "dataset": entry.dataset, "mu": entry.mu, **entry.body}
        for entry in entries
    ]
    lines = [
        f"{row['entry']:>4}  {row['time']}  {row['kind']:<8} {row['dataset']:<20} "
        f"epsilon {row['epsilon']:<8g} delta {row['delta']:<8g} mu {row['mu']:.4g}"
        for row in rows
    ]
    give(rows, as_json=as_json, text="\n".join(lines))
    if not rows:
        say("No data set has a budget here yet.")


def _show(balances: "list[Balance]", *, as_json: bool) -> None:
    rows = [
        {
            "dataset": one.dataset,
            "epsilon": one.epsilon,
            "delta": one.delta,
            "neighbors": one.unit.neighbors,
            "rows_per_unit": one.unit.max_rows,
            "releases": one.releases,
            "mu": one.mu,
            "mu_left": one.mu_left,
            "epsilon_left": one.epsilon_left(),
        }
        for one in balances
    ]
    lines = [
        f"{one.dataset}: {one.epsilon_left():.4g} of epsilon {one.epsilon:g} left at delta {one.delta:g} "
        f"(mu {one.mu_left:.4g} of {one.mu:.4g}), after {one.releases} "
        f"{'release' if one.releases == 1 else 'releases'}; protects {one.unit}"
        for one in balances
    ]
    give(rows, as_json=as_json, text="\n".join(lines))
