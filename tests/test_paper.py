"""The paper's experiment: its table read and cleaned, its clusters, its figures, and what does not hold."""

import csv
import dataclasses
import json
import re

import numpy as np
import pytest

from huemeans import InvalidArgument, whitened_limit
from huemeans.cli import run
from huemeans.paper.campaign import COLUMNS, WORDS, cleaned, engineered, literal, made_up, read_campaign
from huemeans.paper.claims import loss_claims
from huemeans.paper.clusters import PAPER_TRUE, RECIPES, clustered, elbow_curve, knee, profiles
from huemeans.paper.schemes import COLORED, DELTAS, EPSILONS, EXACT, LEMMA, WHITE, Point, limits, shapes_of


def written(campaign, path, *, separator="\t", dates="%d-%m-%Y", encoding="utf-8", newline="\n", money=False):
    """Write a campaign as one of the variants of the file."""
    with path.open("w", encoding=encoding, newline="") as file:
        table = csv.writer(file, delimiter=separator, lineterminator=newline)
        table.writerow(COLUMNS)
        for at in range(len(campaign)):
            row = []
            for name in COLUMNS:
                if name in WORDS:
                    row.append(campaign.words[name][at])
                elif name == "Dt_Customer":
                    row.append(campaign.dates[at].strftime(dates))
                else:
                    value = campaign.numbers[name][at]
                    shown = f"${value:,.2f} " if money and name == "Income" else f"{value:g}"
                    row.append("" if np.isnan(value) else shown)
            table.writerow(row)
    return path


@pytest.fixture(scope="module")
def people():
    """Return the made-up customers that cleaning keeps."""
    return cleaned(made_up())[-1][1]


@pytest.fixture(scope="module")
def campaign(marketing_file):
    """Return the paper's own customers, cleaned, where the file is at hand."""
    return cleaned(read_campaign(str(marketing_file)))


@pytest.mark.parametrize(
    "variant",
    [{}, {"money": True}, {"separator": ";"}, {"separator": ","}, {"dates": "%d/%m/%Y", "separator": ","},
     {"dates": "%Y-%m-%d", "encoding": "utf-8-sig", "newline": "\r\n"}],
)  # fmt: skip
def test_every_variant_of_the_file_gives_the_same_table(variant, tmp_path):
    """Separators, ends of lines, byte-order marks and ways to write a date."""
    made = made_up(300)
    found = read_campaign(str(written(made, tmp_path / "table.csv", **variant)))
    assert found.words == made.words
    assert found.dates == made.dates
    for name, column in made.numbers.items():
        np.testing.assert_allclose(found.numbers[name], column, rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text.replace("Income", "Lohn"), "has no column Income"),
        (lambda _: "a,b\n1,2\n", "has no column ID, Year_Birth, Education, Marital_Status, Income, ..."),
        (lambda text: "\n".join(text.split("\n")[:20]), "has hardly any rows"),
        (
            lambda text: text.replace("Graduation", "Diploma"),
            "its column Education has words",
        ),
        (lambda text: text.replace("Z_Revenue", "Income"), "it has a column twice"),
        (
            lambda text: re.sub(r"\t(\d{5})\t", r"\t\1,00\t", text),
            "has cells that are no numbers",
        ),
        (lambda text: text.replace("-2012", "-20x2"), "cells that are no dates like 04-09-2012"),
        (lambda _: "", "has no column"),
    ],
)
def test_another_file_is_refused_with_the_place_of_the_right_one(change, words, tmp_path):
    """No cell is quoted."""
    path = written(made_up(300), tmp_path / "table.csv")
    path.write_text(change(path.read_text()))
    with pytest.raises(InvalidArgument) as caught:
        read_campaign(str(path))
    assert words in str(caught.value)
    assert "kaggle.com" in str(caught.value)
    assert "20x2" not in str(caught.value)
    with pytest.raises(InvalidArgument, match=r"cannot be read.*kaggle"):
        read_campaign(str(tmp_path / "nowhere.csv"))


def test_cleaning_leaves_out_unknown_incomes_and_outliers():
    """Step by step, and no more than those."""
    made = made_up(500)
    made.numbers["Income"][7] = 666_666
    made.numbers["Year_Birth"][8] = 1893
    made.numbers["Income"][7:9] = [666_666, 50_000]
    known = int((~np.isnan(made.numbers["Income"])).sum())
    assert [len(table) for _, table in cleaned(made)] == [500, known, known - 2]


def test_recipes_have_their_widths_and_standard_columns(people):
    """28 and 23 columns; mean 0, deviation 1, or constant."""
    for rows, width in ((literal(people), 28), (engineered(people, levels=False), 23)):
        assert rows.shape == (len(people), width)
        np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-9)
        deviation = rows.std(axis=0)
        assert (np.isclose(deviation, 1) | (deviation == 0)).all()


def test_table_1_comes_out_exactly(campaign):
    """586, 510, 506, 610, from two recipes; the literal 28 columns do not give it."""
    assert [len(table) for _, table in campaign] == [2240, 2216, 2212]
    found = {recipe.name: clustered(campaign[-1][1], recipe) for recipe in RECIPES}
    assert tuple(found["R1"].sizes) == tuple(found["R2"].sizes) == PAPER_TRUE
    assert tuple(sorted(found["literal 28"].sizes)) != tuple(sorted(PAPER_TRUE))
    np.testing.assert_allclose(found["R1"].loss * 2212, 29710.2392, atol=1e-3)
    np.testing.assert_allclose(found["R2"].loss * 2212, 29698.3321, atol=1e-3)
    words = [profile.words for profile in profiles(campaign[-1][1], found["R1"].labels)]
    assert words == [("medium", "medium"), ("high", "high"), ("medium", "low"), ("low", "low")]


def test_the_elbow_depends_on_where_the_curve_starts(campaign):
    """K = 4 from 2 on, K = 3 from 1 on."""
    rows = clustered(campaign[-1][1], RECIPES[0]).rows
    losses = elbow_curve(rows, range(1, 11))
    assert knee(range(2, 11), losses[1:]) == 4
    assert knee(range(1, 11), losses) == 3


def test_every_scheme_states_the_epsilon_that_it_keeps(people):
    """The paper's constant keeps less or more than it says, the lemma far more, the exact limit just that."""
    shapes = shapes_of(clustered(people, RECIPES[0]))
    assert shapes.traces[COLORED] < shapes.traces[WHITE]
    assert shapes.lemma_factor > 10
    for delta in (1e-6, 1e-3):
        for epsilon in EPSILONS:
            assert limits(EXACT, epsilon, delta, 1.0) == (whitened_limit(epsilon, delta, "pdp"), epsilon)
            real = limits(WHITE, epsilon, delta, shapes.lemma_factor)[1]
            assert real == limits(COLORED, epsilon, delta, shapes.lemma_factor)[1]
            assert limits(LEMMA, epsilon, delta, shapes.lemma_factor)[1] > 3 * max(real, epsilon)
    assert limits(WHITE, 20.0, 1e-6, 1.0)[1] == pytest.approx(24.541, abs=1e-3)


def test_a_claim_that_fails_is_said_to_fail():
    """Colored noise made to lose more than white in one cell: the check finds it."""
    points = [
        Point(scheme, epsilon, delta, loss, 0.0, 0.0, epsilon)
        for scheme, loss in ((WHITE, 2.0), (COLORED, 1.0), (LEMMA, 0.5), ("Balcan et al. 2017", 9.0))
        for epsilon in EPSILONS
        for delta in DELTAS
    ]
    assert [claim.holds for claim in loss_claims(points)] == [True, True, True]
    at = points.index(Point(COLORED, 1.0, 0.1, 1.0, 0.0, 0.0, 1.0))
    spoiled = [*points[:at], dataclasses.replace(points[at], loss=2.5), *points[at + 1 :]]
    assert [claim.holds for claim in loss_claims(spoiled)] == [False, True, True]


@pytest.mark.parametrize("own", [False, True], ids=["made up", "the paper's own"])
def test_the_command_writes_page_figures_and_tables(own, tmp_path, capsys, request):
    """Sizes are exact on the paper's own table; color lies below white in every cell of figure 2."""
    source = ["--data", str(request.getfixturevalue("marketing_file"))] if own else ["--synthetic"]
    out = tmp_path / "out"
    assert run(["paper", *source, "--out", str(out), "--repeats", "2", "--workers", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    names = {"elbow.svg", "figure1a.svg", "figure1b.svg", "figure2.svg", "figure2-more.svg", "figure3a.svg",
             "figure3b.svg", "figure2.csv", "tables.csv", "paper.html"}  # fmt: skip
    assert {path.name for path in out.iterdir()} == names
    with (out / "tables.csv").open() as file:
        table = list(csv.DictReader(file))
    assert list(table[0]) == ["table", "cluster", "paper_true", "true", "paper_noisy", "noisy"]
    assert [int(row["paper_true"]) for row in table[:4]] == [586, 510, 506, 610]
    assert ([int(row["true"]) for row in table[:4]] == [586, 510, 506, 610]) == own
    page = (out / "paper.html").read_text()
    assert all(name in page for name in names - {"paper.html", "tables.csv", "figure2.csv"})
    holds = {claim["statement"]: claim["holds"] for claim in found["claims"]}
    assert holds["colored noise loses less than white noise at every (epsilon, delta)"]
    assert not holds["Lemma 4 keeps the epsilon that it is told"]
    with (out / "figure2.csv").open() as file:
        losses = {(r["scheme"], r["epsilon"], r["delta"]): float(r["loss"]) for r in csv.DictReader(file)}
    whites = {key: loss for key, loss in losses.items() if key[0] == WHITE}
    assert len(whites) == len(EPSILONS) * len(DELTAS)
    assert all(losses[COLORED, key[1], key[2]] < loss for key, loss in whites.items())


def test_wrong_calls_say_what_is_missing(capsys, tmp_path):
    """Neither file nor --synthetic, both, or a file that is not there."""
    for arguments in ([], ["--synthetic", "--data", "x.csv"], ["--data", str(tmp_path / "x.csv")]):
        assert run(["paper", *arguments, "--out", str(tmp_path / "out")]) == 3
        assert "kaggle.com" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
