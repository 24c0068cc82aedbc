"""Colored Gaussian noise, exact: whiten, go to a lattice, add discrete Gaussians there, un-whiten."""

from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from huemeans import checks
from huemeans.budget import Accountant
from huemeans.discretization import Draws
from huemeans.entropy import BitSource, open_source
from huemeans.errors import UnprotectedDirection
from huemeans.sampler import discrete_gaussian

STEPS: Final = 2**30
"""Lattice steps per standard deviation of ``ColoredGaussian``; Theorem D's charge is below 1e-15."""

_STRAY: Final = 1e-12  # what rounding may add to a difference outside the span, times d

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class SeededArray(np.ndarray):
    """An array made with seeded noise: NOT PRIVATE, as it says wherever it is printed.

    Slices and arithmetic keep the mark; a number taken out, or a copy as a plain array, has none.
    """

    def __repr__(self) -> str:
        """Show the mark first."""
        return "NOT PRIVATE (seeded noise) " + super().__repr__()

    def __str__(self) -> str:
        """Show the mark first."""
        return "NOT PRIVATE (seeded noise) " + super().__str__()


def noisy_sum(
    total: Integers,
    *,
    part: str,
    scale: int,
    sensitivity_squared: int,
    accountant: Accountant,
    bits: BitSource,
) -> Integers:
    """Charge, then add exact discrete Gaussians of one scale to an integer vector or matrix.

    Guarantee: if two neighboring tables move ``total`` by at most sqrt(sensitivity_squared) in Euclidean
    length, this is a Gaussian-DP release of mu = sqrt(sensitivity_squared) / scale up to Theorem D.
    Nothing is drawn if the accountant refuses.
    """
    accountant.charge(part, sensitivity_squared=sensitivity_squared, scale=scale, draws=total.size)
    return total + discrete_gaussian(scale, total.size, bits).reshape(total.shape)


class ColoredGaussian:
    """Gaussian noise of a given covariance.

    Parameters
    ----------
    covariance : array-like of shape (d, d)
        Symmetric and positive semidefinite.  A singular one leaves directions without noise; a difference
        that reaches into them has infinite sensitivity, and ``release`` refuses it.  Only a feature of
        variance exactly zero is published as it is: a direction that is singular up to rounding keeps noise
        of about 1e-8 standard deviations, so that the rounding of the value cannot be seen.

    Notes
    -----
    Columns are scaled to unit variance first, so features of very different sizes do not disturb each
    other.  With W the whitening matrix and g = 2^-30, a value v is put on the lattice as
    q = round(W v / g), exact discrete Gaussians of 2^30 steps are added to q, and the result is taken back
    by the inverse of W, which is post-processing.

    Examples
    --------
    >>> noise = ColoredGaussian([[4.0, 0.0], [0.0, 0.25]])
    >>> noise.sensitivity([2.0, 0.0]), noise.sensitivity([0.0, 2.0])
    (1.0, 4.0)
    >>> noise.release([10.0, 20.0], differences=[[0.1, 0.0]]).shape
    (2,)
    """

    def __init__(self, covariance: ArrayLike) -> None:
        matrix = checks.real_array("covariance", covariance)
        self._covariance = checks.covariance_like("covariance", matrix)
        self._covariance.setflags(write=False)
        self._noisy = np.diag(self._covariance) > 0
        block = self._covariance[np.ix_(self._noisy, self._noisy)]
        self._deviation = np.sqrt(np.diag(block))
        values, vectors = np.linalg.eigh(block / self._deviation / self._deviation[:, None])
        tolerance = len(values) * np.finfo(np.float64).eps * values.max(initial=1.0)
        if (values < -10 * tolerance).any():
            checks.refuse_negative("covariance", matrix)
        self._null = vectors[:, values <= tolerance]
        self._vectors, self._lengths = vectors, np.sqrt(np.maximum(values, tolerance))

    @property
    def covariance(self) -> Floats:
        """The covariance, symmetrized and read-only."""
        return self._covariance

    @property
    def rank(self) -> int:
        """The number of directions that carry noise, but for what is lost in rounding."""
        return int(self._vectors.shape[1] - self._null.shape[1])

    @property
    def draws(self) -> Draws:
        """What one ``release`` adds to (N, S) of Theorem D."""
        return Draws(len(self._lengths), Fraction(len(self._lengths), STEPS**2))

    def __repr__(self) -> str:
        """Show the size and no entry: a covariance may itself be private."""
        return f"<ColoredGaussian in {len(self._covariance)} dimensions, rank {self.rank}>"

    def sensitivity(self, difference: ArrayLike) -> float | Floats:
        """Return ||covariance^(-1/2) d||, infinite if d leaves the span of the covariance.

        ``difference`` is one vector (d,) or many (n, d); the result is a number or an (n,) array.
        """
        given = checks.real_array("difference", difference)
        rows = self._rows("difference", given[None] if given.ndim == 1 else given)
        outside = (rows[:, ~self._noisy] != 0).any(axis=1)
        scaled = rows[:, self._noisy] / self._deviation
        outside |= _lengths(scaled @ self._null) > _STRAY * len(self._covariance) * _lengths(scaled)
        result: Floats = np.where(outside, np.inf, _lengths(scaled @ self._vectors / self._lengths))
        return float(result[0]) if given.ndim == 1 else result

    def lattice_sensitivity(self, value: ArrayLike, differences: ArrayLike) -> float:
        """Return the whitened sensitivity that ``release`` really has for these neighbors, rounding included.

        It is the largest distance, over the rows d of ``differences``, between the lattice points of
        ``value`` and of ``value - d``; at most sqrt(rank) steps of 2^-30 above ``sensitivity(d)``.
        It is infinite where a neighbor moves something that carries no noise.
        """
        start = self._value(value)
        rows = self._rows("differences", checks.real_array("differences", differences))
        if not np.isfinite(self.sensitivity(rows)).all():
            return float("inf")
        moved = self._lattice(start[None]) - self._lattice(start - rows)
        return float(_lengths(moved).max(initial=0.0)) * (1 + 1e-12) / STEPS

    def release(self, value: ArrayLike, differences: ArrayLike, *, bits: BitSource | None = None) -> Floats:
        """Return ``value`` with exact noise of this covariance, for neighbors ``value - differences``.

        Parameters
        ----------
        value : array-like of shape (d,)
            What is to be published.
        differences : array-like of shape (n, d)
            How far each neighboring table moves it.
        bits : BitSource, optional
            The open source of a fit that makes several releases; by default one is opened for this release.

        Returns
        -------
        ndarray of shape (d,)
            A point of the lattice, un-whitened.  Inside ``seeded_noise`` the array is marked NOT PRIVATE.

        Raises
        ------
        UnprotectedDirection
            If a neighbor differs where the covariance is singular: no noise would hide it.

        Notes
        -----
        Guarantee: against each neighbor, Gaussian-DP with mu = ``lattice_sensitivity(value, differences)``
        up to Theorem D for d draws of scale 2^30.  The neighbors are those given, no others.
        """
        if not np.isfinite(self.lattice_sensitivity(value, differences)):
            raise UnprotectedDirection(
                "differences leave the span of the covariance: a neighbor moves the value in a direction "
                "that carries no noise, which would publish it bare. Use a covariance that covers them all."
            )
        source = open_source() if bits is None else bits
        start = self._value(value)
        point = self._lattice(start[None])[0]
        noise = discrete_gaussian(STEPS, len(point), source)
        noisy = np.array([float(int(q) + int(k)) for q, k in zip(point, noise, strict=True)])
        result = self._from_lattice(noisy[None])[0]
        result[~self._noisy] = start[~self._noisy] + 0.0  # no sign of zero
        return marked(result, source)

    def draw(self, size: int) -> Floats:
        """Simulate noise, shape (size, d).

        For simulation only: adding the result to a value in floating point is *not* private, since the low
        bits of the sum reveal the value.  Use ``release``.
        """
        count = checks.integer("size", size, least=0, remedy="Say how many vectors to draw")
        bits = open_source()
        noise = discrete_gaussian(STEPS, count * len(self._lengths), bits).astype(np.float64)
        return marked(self._from_lattice(noise.reshape(count, len(self._lengths))), bits)

    def _lattice(self, values: Floats) -> Floats:
        """Put each row on the lattice, by elementwise operations in a fixed order: row by row alone.

        Points are whole numbers kept in floats; ``release`` adds noise to them as integers of any size.
        """
        scaled = values[:, self._noisy] / self._deviation
        return np.rint(_row_pure_product(scaled, self._vectors / self._lengths) * STEPS)

    def _from_lattice(self, points: Floats) -> Floats:
        result = np.zeros((len(points), len(self._covariance)))
        result[:, self._noisy] = (points / STEPS * self._lengths) @ self._vectors.T * self._deviation
        return result

    def _value(self, value: ArrayLike) -> Floats:
        array = checks.real_array("value", value)
        checks.shaped("value", array, (len(self._covariance),))
        return _finite("value", array)

    def _rows(self, name: str, array: Floats) -> Floats:
        if array.ndim != 2 or array.shape[1] != len(self._covariance):  # noqa: PLR2004
            wanted = f"(n, {len(self._covariance)}), one row per neighbor"
            width = f" and {array.shape[1]} columns" if array.ndim == 2 else ""  # noqa: PLR2004
            found = f"<array in {array.ndim} dimensions{width}>"
            checks.refuse(name, found, wanted, "Stack the differences as rows")
        return _finite(name, array)


def _lengths(rows: Floats) -> Floats:
    """Return Euclidean lengths without underflow or overflow of the squares."""
    largest = np.abs(rows).max(axis=1, initial=0.0)
    largest[largest == 0] = 1.0
    return np.asarray(largest * np.linalg.norm(rows / largest[:, None], axis=1))


def _row_pure_product(rows: Floats, matrix: Floats) -> Floats:
    result = np.zeros((len(rows), matrix.shape[1]))
    for j in range(matrix.shape[0]):
        result += rows[:, j, None] * matrix[j]
    return result


def _finite(name: str, array: Floats) -> Floats:
    if not np.isfinite(array).all():
        checks.refuse(
            name, f"<array of shape (..., {array.shape[-1]})>", "finite numbers", "Remove NaN and inf"
        )
    return array


def marked(result: Floats, bits: BitSource) -> Floats:
    """Return an array that says NOT PRIVATE if its noise came from a seed."""
    return result.view(SeededArray) if bits.seeded else result
