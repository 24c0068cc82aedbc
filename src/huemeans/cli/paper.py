"""``huemeans paper``: the paper's numerical section in one command."""

import os
from pathlib import Path

import click

from huemeans.cli.common import COUNT, give, json_option, say
from huemeans.errors import InvalidArgument


@click.command()
@click.option(
    "--data", type=click.Path(dir_okay=False), help="marketing_campaign.csv, in any of its variants."
)
@click.option("--synthetic", is_flag=True, help="Use a made-up table of the same kind.")
@click.option(
    "--out", type=click.Path(file_okay=False), default="out/paper", show_default=True, metavar="DIR"
)
@click.option(
    "--repeats", type=click.IntRange(2), default=50, show_default=True, help="Draws of every scheme."
)
@click.option("--workers", type=COUNT, default=lambda: os.cpu_count() or 1, show_default="all cores")
@json_option
def paper(data: str | None, *, synthetic: bool, out: str, repeats: int, workers: int, as_json: bool) -> None:
    """Reproduce the experiment of the paper that huemeans starts from. NOT PRIVATE: for a public table."""
    from huemeans.paper.campaign import WHERE, made_up, read_campaign
    from huemeans.paper.section import run

    if synthetic == (data is not None):
        raise InvalidArgument(f"expected either --data marketing_campaign.csv or --synthetic. {WHERE}")
    campaign = read_campaign(data) if data is not None else made_up()
    source = "the customers of a marketing campaign" if data is not None else "a made-up table of its kind"
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    section = run(campaign, folder, repeats, workers, say, source)
    lines = [f"{'table 1':<12}{'cluster':>8}{'paper':>8}{'true':>8}{'paper, noisy':>14}{'noisy':>8}"]
    lines += [
        f"{row['table']:<12}{row['cluster']:>8}{row['paper_true']:>8}{row['true']:>8}"
        f"{row['paper_noisy']:>14}{row['noisy']:>8}"
        for row in section.table_1
    ]
    lines += [
        "",
        *(f"{'holds   ' if c.holds else 'does not'}  {c.statement}: {c.found}" for c in section.claims),
    ]
    found = {"out": out, "table_1": section.table_1, "claims": [vars(claim) for claim in section.claims]}
    give(found, as_json=as_json, text="\n".join(lines))
    say(f"\nThe results lie in {folder.resolve()}. Open {(folder / 'paper.html').resolve()}")
