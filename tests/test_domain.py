"""What is public about a row, and the grid that it is put on."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from huemeans import Domain, InvalidArgument
from huemeans.domain import GRID_HALF

ANY_FLOAT = st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True)
ROWS = arrays(np.float64, st.tuples(st.integers(1, 20), st.just(3)), elements=ANY_FLOAT)
DOMAIN = Domain([1000, -1e-300, -5], [1001, 1e300, 5], names=["year", "wide", "x"])


@given(ROWS)
def test_grid_values_stay_on_the_grid_whatever_a_row_holds(rows):
    """NaN, infinities, denormals and 1e308 neither raise nor warn nor leave the grid."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grid, kept = DOMAIN.to_grid(rows)
    assert grid.dtype == np.int32
    assert np.abs(grid).max() <= GRID_HALF
    assert kept.all()


@given(ROWS)
def test_a_row_does_not_depend_on_the_rows_beside_it(rows):
    """One row at a time, in reverse or in Fortran order, the grid is the same to the last bit."""
    grid, _ = DOMAIN.to_grid(rows)
    alone = np.vstack([DOMAIN.to_grid(row[None])[0] for row in rows])
    np.testing.assert_array_equal(grid, alone)
    np.testing.assert_array_equal(grid[::-1], DOMAIN.to_grid(np.asfortranarray(rows[::-1]))[0])


@given(arrays(np.float64, (9, 2), elements=st.floats(-3, 4)), st.floats(-1e9, 1e9), st.floats(1e-3, 1e6))
def test_raw_units_come_back_to_half_a_step(rows, lower, width):
    """Values inside the bounds return to within half a grid step (and the rounding of the raw float)."""
    domain = Domain([lower] * 2, [lower + width] * 2)
    values = lower + width * np.clip(rows, 0, 1)
    back = domain.to_raw(domain.to_grid(values)[0])
    rounding = 8 * np.finfo(float).eps * (abs(lower) + width)
    assert np.abs(back - np.clip(values, lower, lower + width)).max() <= domain.step[0] / 2 + rounding


@given(arrays(np.float64, (20, 1), elements=st.integers(0, 2**20).map(lambda k: k / 2**20)))
def test_where_an_interval_lies_costs_no_accuracy(fractions):
    """1000 to 1001 gives the very integers that 0 to 1 gives."""
    near, _ = Domain([0], [1]).to_grid(fractions)
    far, _ = Domain([1000], [1001]).to_grid(1000 + fractions)
    np.testing.assert_array_equal(near, far)


def test_missing_and_outside_policies():
    """Midpoint, constant and drop; clip and drop: what becomes of a row is public."""
    rows = [[np.nan, 5.0], [2.0, 11.0], [1.0, -np.inf], [0.5, 2.5]]
    bounds = ([0, 0], [4, 10])
    grid, kept = Domain(*bounds).to_grid(rows)
    assert Domain(*bounds).to_raw(grid).tolist() == [[2, 5], [2, 10], [1, 0], [0.5, 2.5]]
    constant = Domain(*bounds, missing=[1.0, 9.0])
    assert constant.to_raw(constant.to_grid(rows)[0])[0].tolist() == [1, 5]
    grid, kept = Domain(*bounds, missing="drop").to_grid(rows)
    assert kept.tolist() == [False, True, True, True]
    assert grid[0].tolist() == [0, 0]
    assert Domain(*bounds, outside="drop").to_grid(rows)[1].tolist() == [True, False, False, True]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint64, np.int64, bool, np.longdouble])
def test_every_real_dtype_is_a_number(dtype):
    """Any float, integer or boolean dtype is taken; float32 is cast before the grid."""
    grid, _ = Domain([0], [2]).to_grid(np.array([[0], [1]], dtype=dtype))
    assert grid.ravel().tolist() == [-GRID_HALF, 0]


def test_zero_rows_are_answered():
    """An empty table is a table."""
    grid, kept = DOMAIN.to_grid(np.empty((0, 3)))
    assert (grid.shape, kept.shape) == ((0, 3), (0,))


def test_bounds_in_three_forms_say_the_same():
    """One pair, an array of pairs and a mapping by name."""
    one = Domain.from_bounds((0, 10), names=["a", "b"])
    array = Domain.from_bounds([[0, 0], [10, 10]], names=["a", "b"])
    mapping = Domain.from_bounds({"b": (0, 10), "a": (0, 10)}, names=["a", "b"])
    for domain in (one, array, mapping):
        assert domain.names == ("a", "b")
        assert domain.upper.tolist() == [10, 10]
    assert Domain.from_bounds((0, 1), n_features=3).names == ("x0", "x1", "x2")


def test_public_facts_are_read_only():
    """Nobody changes bounds after rows have been seen."""
    with pytest.raises(ValueError, match="read-only"):
        DOMAIN.lower[0] = 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Domain([0, 3], [1, 3]), r"^bounds of feature 1=\(3\.0, 3\.0\) .* lower below upper"),
        (lambda: Domain([2], [1]), r"^bounds of feature 0=\(2\.0, 1\.0\)"),
        (lambda: Domain([-1e308], [1e308]), "finite width"),
        (lambda: Domain([0], [float("nan")]), r"^upper\[0\]=nan .* a finite number"),
        (lambda: Domain([0, 1], [1]), r"^upper=<array of shape \(1,\)> .* shape \(2,\)"),
        (lambda: Domain([], []), r"^lower=<array of shape \(0,\)>"),
        (lambda: Domain(["a"], ["b"]), r"^lower=<array of text> .* real numbers"),
        (lambda: Domain([0], [1], names=["a", "b"]), r"^names=\('a', 'b'\) .* 1 different"),
        (lambda: Domain([0, 0], [1, 1], names=["a", "a"]), "different strings"),
        (lambda: Domain([0], [1], missing="mean"), r"^missing='mean' .* 'midpoint', 'drop'"),
        (lambda: Domain([0], [1], missing=[2.0]), r"^missing=\[2\.0\] .* within the bounds"),
        (lambda: Domain([0], [1], outside="wrap"), r"^outside='wrap' "),
        (lambda: Domain.from_bounds((0, 1, 2), n_features=3), r"^bounds=<array of shape \(3,\)>"),
        (lambda: Domain.from_bounds([[0, 0], [1, 1]], n_features=3), r"shape \(2, 3\)"),
        (lambda: Domain.from_bounds({"a": (0, 1)}, names=["a", "b"]), r"without a pair: \['b'\]"),
        (
            lambda: Domain.from_bounds({"a": (0, 1, 2)}),
            r"^bounds\['a'\]=<array of shape \(3,\)> .* shape \(2,\)",
        ),
    ],
)
def test_bad_public_facts_are_refused(make, message):
    """Each message names the argument, its public value, what was expected and what to do."""
    with pytest.raises(InvalidArgument, match=message):
        make()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros(7), r"^rows=<table, 1-d> .* two dimensions with 3 columns \(year, wide, x\)"),
        (np.zeros((7, 4)), r"^rows=<table, 4 columns>"),
        (np.array([["61234.5", "b", "c"]]), r"^rows=<table of text> .* a numeric dtype"),
        (np.zeros((7, 3), dtype=complex), "complex numbers"),
        (np.full((7, 3), None), "Python objects"),
    ],
)
def test_a_bad_schema_is_refused_without_a_private_value(rows, message):
    """The message knows columns and dtype; it holds neither a value nor the number of rows."""
    with pytest.raises(InvalidArgument, match=message) as caught:
        DOMAIN.to_grid(rows)
    assert "7 " not in str(caught.value)
    assert "61234" not in str(caught.value)


def test_each_row_of_a_list_stands_by_itself():
    """What is no number is missing, and so is a row of another length; no rows are answered, too."""
    grid, kept = DOMAIN.to_grid([[1000.0, 0.0, None], [4.0], ["1000", "b" * 21, "0"]])
    alone = [DOMAIN.to_grid([row])[0][0].tolist() for row in ([1000.0, 0.0, None], [4.0], ["1000", "?", "0"])]
    assert grid.tolist() == alone
    assert kept.all()
    assert grid[1].tolist() == [0, 0, 0]
    assert DOMAIN.to_grid([])[0].shape == (0, 3)
    masked = np.ma.masked_array([[1000.0, 0.0, 5.0]], mask=[[False, False, True]])
    assert DOMAIN.to_grid(masked)[0][0, 2] == 0


def test_a_table_of_another_width_is_refused_without_its_length():
    """The message knows columns, and neither a value nor the number of rows."""
    with pytest.raises(InvalidArgument, match=r"^rows=<table, 2 columns>") as caught:
        DOMAIN.to_grid(np.full((61234, 2), 61234.0))
    assert "61234" not in str(caught.value)
