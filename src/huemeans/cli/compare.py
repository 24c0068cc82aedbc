"""``huemeans compare``: loss against epsilon on the user's own data. For the holder: it is not private."""

import math
from typing import TYPE_CHECKING, Any

import click

from huemeans.cli.common import COUNT, delta_option, facts, give, json_option, say
from huemeans.errors import InvalidArgument

if TYPE_CHECKING:
    from huemeans.comparison import Case

_WARNING = "NOT PRIVATE: computed from the rows, for the holder and not for publication."


@click.command()
@click.argument("data", type=click.Path())
@click.option("--clusters", type=COUNT, required=True)
@click.option("--bounds", required=True, metavar="FILE", help="A TOML file of public facts.")
@click.option("--epsilons", default="0.1,0.5,1,2,5", show_default=True)
@delta_option
@click.option("--repeats", type=COUNT, default=5, show_default=True)
@click.option("--columns", metavar="A,B")
@click.option("--delimiter")
@click.option("--decimal", type=click.Choice([".", ","]), default=".", show_default=True)
@json_option
def compare(data: str, *, epsilons: str, repeats: int, as_json: bool, **options: Any) -> None:
    """Compare methods on DATA: loss over that of non-private K-means. NOT PRIVATE."""
    from huemeans.comparison import losses

    wanted = _numbers(epsilons)
    say(_WARNING)
    found = losses(_case(data, options), wanted, repeats)
    table = [
        {"method": name, "epsilon": epsilon, "ratio": None if ratio != ratio else ratio}  # noqa: PLR0124
        for name, row in found.items()
        for epsilon, ratio in row.items()
    ]
    lines = [_WARNING, f"{'loss / non-private loss':<28}" + "".join(f"{f'eps {e:g}':>12}" for e in wanted)]
    lines += [f"{name:<28}" + "".join(f"{row[e]:>12.3f}" for e in wanted) for name, row in found.items()]
    give({"warning": _WARNING, "losses": table}, as_json=as_json, text="\n".join(lines))


def _numbers(epsilons: str) -> list[float]:
    try:
        wanted = [float(epsilon) for epsilon in epsilons.split(",")]
    except ValueError:
        wanted = []
    if not wanted or not all(0 < epsilon < math.inf for epsilon in wanted):
        words = f"{epsilons!r} is no list of numbers above 0, like 0.5,1,2."
        raise click.BadParameter(words, param_hint="--epsilons")
    return wanted


def _case(data: str, options: dict[str, Any]) -> "Case":
    import numpy as np

    from huemeans.cli.fit import chosen_table, limits_of
    from huemeans.comparison import Case
    from huemeans.domain import Domain

    bounds, words = facts(options["bounds"])
    table = chosen_table(data, bounds, words, {**options, "unit": None})
    limits = np.array(list(limits_of(bounds, words, table).values())).T
    domain = Domain(limits[0], limits[1])
    rows = domain.to_raw(domain.to_grid(table.load()[0][:])[0])
    if len(rows) <= options["clusters"]:
        raise InvalidArgument("a comparison needs more rows than clusters. Take fewer clusters.")
    return Case(rows, options["clusters"], limits, options["delta"])
