"""At most so many rows of each person, chosen by their content alone."""

import numpy as np
import pytest

from huemeans import InvalidArgument
from huemeans.persons import content_hash, limited_rows

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
