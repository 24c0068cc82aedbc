"""Promises as types that print one plain sentence."""

import dataclasses

import pytest

from huemeans import Guarantee, InvalidArgument, PrivacyUnit


@pytest.mark.parametrize(
    ("unit", "sentence"),
    [
        (PrivacyUnit("add-remove"), "one row, added or removed"),
        (PrivacyUnit("replace-one"), "one row, replaced in place (the number of rows is public)"),
        (PrivacyUnit("add-remove", 4), "one person with at most 4 rows, all added or removed"),
    ],
)
def test_a_unit_says_whose_presence_is_hidden(unit, sentence):
    """The unit prints as part of a sentence."""
    assert sentence == str(unit)


def test_a_guarantee_is_one_sentence():
    """Notion, epsilon, delta and unit stand in it."""
    promise = Guarantee("dp", 0.5, 1e-6, PrivacyUnit("replace-one"))
    assert str(promise).startswith(
        "(epsilon=0.5, delta=1e-06)-differential privacy for every two tables that differ"
    )
    assert promise.is_private


def test_a_seeded_guarantee_says_not_private_first():
    """Nobody can read a seeded promise as a promise."""
    promise = Guarantee("dp", 0.5, 1e-6, PrivacyUnit("add-remove"), seeded=True)
    assert str(promise).startswith("NOT PRIVATE")
    assert not promise.is_private


def test_a_per_table_guarantee_says_what_it_is_not():
    """Probabilistic DP at one table names what it holds fixed, what it leaves out and what it broke."""
    promise = Guarantee(
        "pdp-at-table",
        24.54,
        1e-6,
        PrivacyUnit("add-remove"),
        mu=3.7128,
        declared_epsilon=20.0,
        fixed=("the labels", "the covariance"),
        not_covered=("adding rows",),
    )
    text = str(promise)
    assert "for the removal of any one of its rows" in text
    assert "holding fixed and treating as public the labels and the covariance." in text
    assert "This is not differential privacy." in text
    assert (
        "hockey-stick delta is 4.24e-07 at this epsilon and hockey-stick epsilon 23.8995 at this delta"
        in text
    )
    assert "Epsilon 20 was declared and is not kept." in text
    assert "Not covered: adding rows." in text


def test_a_wasteful_declaration_is_named_as_such():
    """Less spent than declared is said, too; without mu there is no hockey-stick figure."""
    promise = Guarantee("dp-at-table", 0.6, 1e-6, PrivacyUnit("add-remove"), declared_epsilon=1.0)
    assert "Epsilon 1 was declared and is more than is spent." in str(promise)
    assert promise.hockey_stick is None


def test_printed_figures_are_rounded_up():
    """Six digits never make a promise look stronger."""
    promise = Guarantee("dp", 1.0000049, 1.0000041e-6, PrivacyUnit("add-remove"))
    assert str(promise).startswith("(epsilon=1.00001, delta=1.00001e-06)")


def test_promises_are_frozen():
    """A promise cannot be changed after it is made."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        Guarantee("dp", 1.0, 1e-6, PrivacyUnit("add-remove")).epsilon = 0.1


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: PrivacyUnit("swap"), "neighbors='swap'"),
        (lambda: PrivacyUnit("add-remove", 0), "max_rows=0"),
        (lambda: Guarantee("dp", 1.0, 1e-6, "one row"), "unit='one row'"),
        (lambda: Guarantee("dp", float("nan"), 1e-6, PrivacyUnit("add-remove")), "epsilon=nan"),
        (lambda: Guarantee("dp", 1.0, 2.0, PrivacyUnit("add-remove")), "delta=2.0"),
        (lambda: Guarantee("zcdp", 1.0, 0.1, PrivacyUnit("add-remove")), "notion='zcdp'"),
    ],
)
def test_bad_promises_are_refused(make, name):
    """Each message names the field and its value."""
    with pytest.raises(InvalidArgument, match=f"^{name}"):
        make()
