"""``huemeans demo``: a made-up shop, from its table to a report."""

import shutil
from pathlib import Path

import click

from huemeans.cli.common import COUNT, give, json_option, say
from huemeans.cli.fit import released, summary
from huemeans.errors import InvalidArgument

_MARK = ".huemeans-demo"


@click.command()
@click.option("--out", type=click.Path(file_okay=False), default="out/demo", show_default=True, metavar="DIR")
@click.option("--rows", type=COUNT, default=20_000, show_default=True, help="How many customers to make up.")
@json_option
def demo(out: str, rows: int, *, as_json: bool) -> None:
    """Make up the customers of a shop, release their clusters and show the report."""
    from huemeans.customers import public_facts, write_customers
    from huemeans.guarantee import PrivacyUnit
    from huemeans.ledger import Ledger

    folder = _emptied(Path(out))
    table, bounds, ledger = folder / "customers.csv", folder / "bounds.toml", folder / "privacy.ledger"
    say("Making up the customers of a shop.")
    write_customers(table, rows)
    bounds.write_text(public_facts(), encoding="utf-8")
    Ledger(ledger).open_dataset("customers", epsilon=3.0, delta=1e-6, unit=PrivacyUnit("add-remove"))
    release = released(
        str(table),
        clusters="auto",
        epsilon=1.0,
        delta=1e-6,
        bounds=str(bounds),
        columns=None,
        categories=None,
        scale="bounds",
        unit=None,
        rows_per_unit=1,
        neighbors="add-remove",
        missing="midpoint",
        outside="clip",
        delimiter=None,
        decimal=".",
        ledger=str(ledger),
        dataset="customers",
    )
    release.write(folder)
    give({"out": str(folder), "release": release.document}, as_json=as_json, text=summary(release))
    say(f"\nThe results lie in {folder.resolve()}. Open {(folder / 'report.html').resolve()}")


def _emptied(folder: Path) -> Path:
    """Return the folder, made or emptied of an earlier demo; no other folder is touched."""
    if folder.exists() and not (folder / _MARK).exists() and any(folder.iterdir()):
        raise InvalidArgument(f"{folder} is not empty and is not an earlier demo. Choose another folder.")
    if (folder / _MARK).exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MARK).touch()
    return folder
