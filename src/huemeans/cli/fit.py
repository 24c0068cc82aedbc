"""``huemeans fit``: from a table in a file to a release in a folder."""

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from huemeans.cli.common import (
    COUNT,
    config_option,
    delta_option,
    epsilon_option,
    facts,
    give,
    json_option,
    neighbors_option,
    say,
)
from huemeans.errors import InvalidArgument

if TYPE_CHECKING:
    from huemeans.release import Release
    from huemeans.sources import TableFile


WORD_BOUNDS = [-1.0, 2.0]


class Clusters(click.ParamType[int | str]):
    """A number of clusters, or "auto"."""

    name = "K|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Return an int, or "auto"."""
        if value == "auto":
            return "auto"
        if not str(value).isdecimal() or int(value) < 1:
            self.fail(f"{value!r} is neither a whole number of at least 1 nor 'auto'.", param, ctx)
        return int(value)


@click.command()
@click.argument("data", type=click.Path())
@config_option
@click.option("--clusters", type=Clusters(), default="auto", show_default=True, help="How many clusters.")
@epsilon_option
@delta_option
@click.option(
    "--bounds",
    default="private",
    show_default="private",
    metavar="FILE|private",
    help="A TOML file of public facts, column = [lower, upper]; or learned with a part of the budget.",
)
@click.option("--out", type=click.Path(file_okay=False), default="out", show_default=True, metavar="DIR")
@click.option("--columns", metavar="A,B", help="Columns to use; those of the bounds, or all, if not given.")
@click.option("--categories", metavar="FILE", help='A TOML file of public words, column = ["word", ...].')
@click.option(
    "--scale",
    type=click.Choice(["raw", "bounds"]),
    default="raw",
    show_default=True,
    help="Measure distance in raw units, or in widths of the bounds.",
)
@click.option("--unit", metavar="COLUMN", help="The column that says whose each row is.")
@click.option(
    "--rows-per-unit",
    type=COUNT,
    default=1,
    show_default=True,
    help="How many rows of each count.",
)
@neighbors_option
@click.option("--missing", type=click.Choice(["midpoint", "drop"]), default="midpoint", show_default=True)
@click.option("--outside", type=click.Choice(["clip", "drop"]), default="clip", show_default=True)
@click.option("--delimiter", help="Of a CSV file; told from its header if not given.")
@click.option("--decimal", type=click.Choice([".", ","]), default=".", show_default=True)
@click.option("--ledger", type=click.Path(dir_okay=False), help="Where the budget is kept: see 'budget'.")
@click.option("--dataset", metavar="NAME", help="Whose budget is spent.")
@json_option
def fit(data: str, out: str, *, as_json: bool, **options: Any) -> None:
    """Release the clusters of DATA: CSV, Parquet, Arrow IPC, or a folder of Parquet files.

    Writes release.json, centroids.csv, report.html and card.md into a folder.
    """
    folder = Path(out)
    if (folder / "release.json").exists():
        raise InvalidArgument(
            f"{folder} holds a release already: a release is not undone. Choose another folder."
        )
    if not out:
        raise click.BadParameter("is empty.", param_hint="--out")
    _check_writable(folder)
    release = released(data, **options)
    release.write(folder)
    say(f"Open {folder / 'report.html'}")
    give({"out": str(folder), "release": release.document}, as_json=as_json, text=summary(release))


def _check_writable(folder: Path) -> None:
    """Find out before the budget is spent whether the folder can be written, and leave it as it was."""
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InvalidArgument(
            f"{folder} cannot be written: {error.strerror}. Choose another folder."
        ) from None
    finally:
        for one in made:
            if one.exists():
                one.rmdir()


def released(data: str, **options: Any) -> "Release":
    """Fit DATA and return its release."""
    private = options["bounds"] == "private"
    if not private and not Path(options["bounds"]).exists():
        raise InvalidArgument(
            f"the bounds {options['bounds']!r} are neither a file that is there nor 'private'."
        )
    bounds, words = facts(None if private else options["bounds"])
    words |= facts(options["categories"])[1]
    table = chosen_table(data, bounds, words, options)
    say(f"Columns: {', '.join(table.names)}. A cell that is no number counts as missing.")
    if table.delimiter == ";" and table.decimal == ".":
        say("The delimiter is ';'. If the numbers have decimal commas, add --decimal ,")
    from huemeans.private import PrivateKMeans

    limits: Any = "private" if private else limits_of(bounds, words, table)
    model = PrivateKMeans(
        options["clusters"],
        epsilon=options["epsilon"],
        delta=options["delta"],
        bounds=limits,
        neighbors=options["neighbors"],
        max_rows_per_person=options["rows_per_unit"],
        scale=options["scale"],
        missing=options["missing"],
        outside=options["outside"],
        ledger=options["ledger"],
        dataset=options["dataset"],
    )
    with _bar(table) as watched:
        release: Release = model.fit(watched).release_
    return release


def chosen_table(
    data: str, bounds: dict[str, list[float]], words: dict[str, tuple[str, ...]], options: dict[str, Any]
) -> "TableFile":
    """Open DATA with the columns that the flags, or else the bounds, name; no row is read."""
    from huemeans.sources import open_table

    chosen = [name.strip() for name in options["columns"].split(",")] if options["columns"] else None
    known = [*bounds, *(name for name in words if name not in bounds)]
    columns = chosen or (known if bounds else None)
    return open_table(
        data,
        columns=columns,
        categories={name: words[name] for name in words if columns is None or name in columns},
        unit=options["unit"],
        delimiter=options["delimiter"],
        decimal=options["decimal"],
    )


def limits_of(
    bounds: dict[str, list[float]], words: dict[str, tuple[str, ...]], table: "TableFile"
) -> dict[str, list[float]]:
    """Return the bounds of every feature.

    A word's column holds 0 and 1; its bounds are wider, so that in widths of the bounds two different words
    lie about as far apart as two usual numbers, and not across the whole range.
    """
    missing = [name for name in table.columns if name not in bounds and name not in words]
    if missing:
        raise InvalidArgument(f"the bounds say nothing of the columns {missing}. Add them, or use --columns.")
    named = {f"{column}={word}": WORD_BOUNDS for column in table.columns for word in words.get(column, ())}
    return {name: named[name] if name in named else bounds[name] for name in table.names}


class _bar:  # noqa: N801  # used as a word: with _bar(table)
    """Shows on a terminal how much of the file is read."""

    def __init__(self, table: "TableFile") -> None:
        self.table = table

    def __enter__(self) -> "TableFile":
        from dataclasses import replace

        if not sys.stderr.isatty():
            return self.table
        return replace(self.table, progress=self._show)

    def __exit__(self, *_: object) -> None:
        if sys.stderr.isatty():
            click.echo("\r" + " " * 60 + "\r", err=True, nl=False)

    def _show(self, share: float) -> None:
        filled = "━" * int(30 * share) + " " * (30 - int(30 * share))
        stage = f"reading {filled} {100 * share:3.0f} %" if share < 1 else "read; fitting …"
        click.echo(f"\r{stage:<58}", err=True, nl=False)


def summary(release: "Release") -> str:
    """Return the release in a few lines."""
    from huemeans.report.words import described

    lines = [str(release.guarantee), ""]
    lines += [f"{at}. {words}" for at, words in enumerate(described(release), start=1)]
    return "\n".join(lines)
