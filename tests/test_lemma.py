"""Lemma 4 as printed: right where it is right, and shown to be wrong where it is not."""

import numpy as np
import pytest

from huemeans import InvalidArgument, min_trace_ellipsoid
from huemeans.lemma import lemma_covariance


@pytest.mark.parametrize("m", [0.5, 1.0, 3.0])
def test_on_orthogonal_differences_all_three_agree(m):
    """The lemma, the optimum and the hand calculation diag(||d||^2) / m^2."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    points = np.diag([1.0, 2.0, 3.0, 4.0]) @ turn
    by_hand = turn.T @ np.diag([1.0, 4.0, 9.0, 16.0]) @ turn / m**2
    lemma = lemma_covariance(points, m)
    np.testing.assert_allclose(by_hand, lemma.covariance, atol=1e-9)
    np.testing.assert_allclose(by_hand, min_trace_ellipsoid(points).covariance / m**2, atol=1e-5)
    assert lemma.factor == pytest.approx(1)


def test_the_closed_form_is_not_exact_beyond_orthogonal_columns():
    """For (1, 0) and (1, 1): constraints of 0.973 and 1.005 where both should be 1."""
    lemma = lemma_covariance([[1, 0], [1, 1]], 1.0)
    assert sorted(lemma.chosen_factors) == pytest.approx([0.973, 1.005], abs=1e-3)


def test_the_smallest_differences_are_the_wrong_ones():
    """In one dimension the outer row breaks its constraint a hundredfold."""
    lemma = lemma_covariance([[0.1], [1.0], [-0.7]], 1.0)
    assert lemma.columns.tolist() == [0]
    assert lemma.factor == pytest.approx(100)


def test_dependent_columns_are_passed_over():
    """The smallest *independent* differences are chosen, in order of their norm."""
    points = np.array([[0.0, 0.0], [1, 1], [2, 2], [0, 5], [9, 9]])
    assert lemma_covariance(points, 1.0).columns.tolist() == [1, 3]


def test_failing_assumptions_are_a_clear_error_with_a_way_out():
    """A constant feature breaks full rank; span=True works in the span and leaves that feature bare."""
    points = np.column_stack([np.random.default_rng(1).normal(size=(30, 2)), np.zeros(30)])
    with pytest.raises(InvalidArgument, match=r"Lemma 4 does not apply.*full rank.*span=True"):
        lemma_covariance(points, 1.0)
    lemma = lemma_covariance(points, 1.0, span=True)
    assert not lemma.covariance[2].any()
    np.testing.assert_allclose(lemma_covariance(points[:, :2], 1.0).covariance, lemma.covariance[:2, :2])


def test_the_smallest_overall_are_never_independent():
    """As printed, Kd columns over all blocks: their rank falls short, so columns are chosen per block."""
    rng = np.random.default_rng(2)
    small, large = 0.1 * rng.normal(size=(50, 4)), rng.normal(size=(50, 4))
    points = np.block([[small, np.zeros((50, 4))], [np.zeros((50, 4)), large]])
    smallest = np.argsort(np.linalg.norm(points, axis=1))[:8]
    assert np.linalg.matrix_rank(points[smallest]) < 8
    assert np.linalg.matrix_rank(points[lemma_covariance(points, 1.0).columns]) == 8


def test_equal_rows_have_nothing_to_hide():
    """No difference at all is an error and not a division by zero."""
    with pytest.raises(InvalidArgument, match="a difference that is not zero"):
        lemma_covariance(np.zeros((3, 2)), 1.0, span=True)
