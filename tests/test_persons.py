"""At most so many rows of each person, chosen by their content alone."""

from decimal import Decimal

import numpy as np
import pytest

from huemeans import InvalidArgument
from huemeans.persons import content_hash, limited_rows, person_codes

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(500, 3))
PERSON = RNG.integers(0, 60, size=500)


def as_set(rows):
    """Return rows as a set of tuples."""
    return {tuple(row) for row in rows}


def test_nobody_keeps_more_than_the_limit():
    """Each person keeps min(rows, limit) of their own rows."""
    kept = as_set(limited_rows(TABLE, PERSON, 4))
    for who in range(60):
        own = as_set(TABLE[who == PERSON])
        assert len(own & kept) == min(4, len(own))


def test_removing_a_person_removes_their_rows_and_changes_no_others():
    """What is kept of others does not depend on who else is there."""
    full = as_set(limited_rows(TABLE, PERSON, 3))
    without = as_set(limited_rows(TABLE[PERSON != 7], PERSON[PERSON != 7], 3))
    assert full - without == as_set(limited_rows(TABLE[PERSON == 7], PERSON[PERSON == 7], 3))
    assert without <= full


def test_order_does_not_matter():
    """Any order of the rows keeps the same rows."""
    order = RNG.permutation(500)
    assert as_set(limited_rows(TABLE, PERSON, 2)) == as_set(limited_rows(TABLE[order], PERSON[order], 2))


def test_equal_content_has_equal_hashes():
    """Zeros of either sign and any NaN are one value; other rows differ."""
    rows = np.array([[0.0, np.nan], [-0.0, -np.nan], [0.0, 1.0]])
    hashes = content_hash(rows)
    assert hashes[0] == hashes[1] != hashes[2]
    assert len(np.unique(content_hash(TABLE))) == 500


def test_a_wrong_length_is_refused():
    """One entry per row, or an error that counts nothing."""
    with pytest.raises(InvalidArgument, match=r"^person=<another length>"):
        limited_rows(TABLE, PERSON[:-1], 2)


def groups(person):
    """Return which entries are told to be one person, as a set of sets of positions."""
    code, present = person_codes(person)
    return {frozenset(np.flatnonzero(code == one).tolist()) for one in set(code[present].tolist())}


@pytest.mark.parametrize(
    "person",
    [
        np.array(["a", None, "b", "a", float("nan")], dtype=object),
        ["a", None, "b", "a", np.datetime64("NaT")],
        [1, None, 2, 1.0, np.float64("nan")],
        np.array([1, np.nan, 2, 1, np.nan]),
        np.ma.MaskedArray(["a", "b", "b", "a", "a"], mask=[0, 1, 0, 0, 1]),
        np.ma.MaskedArray([2**53, 7, 2**53 + 1, 2**53, 7], mask=[0, 1, 0, 0, 1]),
        [2**53, None, 2**53 + 1, 2**53, None],
        [(2, "a"), None, ("2", "a"), (2, "a"), None],
    ],
)
def test_a_row_without_a_person_is_left_out_and_no_two_persons_are_merged(person):
    """Nothing is converted, sorted or compared in a way that depends on other entries."""
    assert groups(person) == {frozenset({0, 3}), frozenset({2})}
    kept = as_set(limited_rows(TABLE[:5], person, 1))
    assert len(kept) == 2
    assert kept <= as_set(TABLE[[0, 2, 3]])


def test_names_that_cannot_be_sorted_are_no_error():
    """Persons of several types are told apart, and 7 is "7" to nobody."""
    assert len(groups([7, "7", b"7", 7.0, (7,)])) == 4


class Namesake:
    """Two of them print alike."""

    def __str__(self):
        return "Smith"


class Broken:
    """Cannot be hashed, and fails to be compared or printed."""

    __hash__ = None

    def __eq__(self, other):
        raise ValueError("61234")

    __str__ = __eq__


@pytest.mark.parametrize(
    ("person", "number"),
    [
        (["ann", np.str_("ann"), "bob"], 2),
        ([7, Decimal(7), 7.0, np.int8(7), 8], 2),
        ([("h1", 3), ("h1", np.int64(3)), ("h2", 3)], 2),
        ([np.datetime64("2020-01-01"), np.datetime64("2020-01-01T00:00"), np.datetime64("2021")], 2),
        ([Namesake(), Namesake()], 2),
        ([10**5000, 10**5000, 10**5000 + 1], 2),
        ([Decimal("sNaN"), Broken(), [1], "ann"], 1),
    ],
)
def test_entries_are_one_person_if_they_are_equal(person, number):
    """Whatever their types or their text; what cannot be compared is nobody, and no error."""
    assert len(groups(person)) == number


def test_removing_a_person_among_missing_ones_changes_no_others():
    """Missing entries are left out each by itself: whoever leaves moves nobody else's rows."""
    person = PERSON.astype(object)
    person[::5] = np.nan
    person[1::50] = None
    full, others = as_set(limited_rows(TABLE, person, 1)), np.array([who != 7 for who in person])
    without = as_set(limited_rows(TABLE[others], person[others], 1))
    assert without <= full
    assert len(full - without) == 1
