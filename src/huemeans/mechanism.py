"""The one door through which sums of rows leave a fit: noised, and charged before they are drawn.

Guarantees (each has a test of its name):

* every method takes exact sums and gives noisy ones; nothing else that depends on a row comes out;
* what one row moves is stated here, for each kind of sum and each neighboring relation, in integers:

  ===========  =========================================  ==============  ================
  kind         a row adds                                 add-remove      replace-one
  ===========  =========================================  ==============  ================
  counts       C to one cell                              C^2             2 C^2
  histograms   C to one cell in each of d histograms      d C^2           2 d C^2
  sums         y with |y| <= R to one cell                R^2             4 R^2
  products     y_i y_j, i <= j, with |y| <= M             M^4             2 M^4
  ===========  =========================================  ==============  ================

* the scales follow from the exact share of mu^2, rounded up.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from huemeans.budget import SHARES, Accountant, scale_for
from huemeans.entropy import BitSource
from huemeans.fold import MOMENT_RADIUS
from huemeans.guarantee import Neighbors
from huemeans.lattice import RADIUS
from huemeans.noise import noisy_sum

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_TIMES: Final = {"counts": 2, "sums": 4, "products": 2}
"""How many times the squared sensitivity grows when a row is replaced and not removed."""


@dataclass(eq=False)
class Mechanism:
    """Adds noise to exact sums for one fit."""

    accountant: Accountant
    bits: BitSource
    neighbors: Neighbors

    def share(self, millionths: int) -> Fraction:
        """Return this many millionths of the mu^2 that was set aside, exactly."""
        return self.accountant.cap_squared * millionths / SHARES

    def counts(self, part: str, total: Integers, mu_squared: Fraction) -> tuple[Floats, float]:
        """Release counts in units of RADIUS; return them, and the deviation of their noise, in rows."""
        return self._counts(part, total, mu_squared, RADIUS**2)

    def histograms(self, part: str, total: Integers, mu_squared: Fraction) -> tuple[Floats, float]:
        """Release d histograms, (d, bins), that a row touches once each, and their noise in rows."""
        return self._counts(part, total, mu_squared, RADIUS**2 * len(total))

    def sums(self, part: str, total: Integers, mu_squared: Fraction) -> tuple[Floats, int]:
        """Release whitened sums; return them, and the deviation of their noise, in lattice steps."""
        square = RADIUS**2 * self._times("sums")
        scale = scale_for(square, mu_squared)
        return self._noisy(part, total, scale, square), scale

    def products(
        self, part: str, total: Integers, diagonal: NDArray[np.bool_], mu_squared: Fraction
    ) -> tuple[Floats, int]:
        """Release second moments; return them, and the deviation of the noise on their diagonal.

        Off the diagonal, noise of scale / sqrt(2) is enough: a row moves the whole by
        sum y_i^4 / s^2 + sum_{i<j} 2 (y_i y_j)^2 / s^2 = |y|^4 / s^2, all of which the diagonal is charged.
        """
        square = MOMENT_RADIUS**4 * self._times("products")
        scale = scale_for(square, mu_squared)
        off_scale = int(np.ceil(scale / np.sqrt(2))) + 1
        noisy = np.empty(total.shape)
        noisy[diagonal] = self._noisy(part, total[diagonal], scale, square)
        noisy[~diagonal] = self._noisy(part, total[~diagonal], off_scale, 0)
        return noisy, scale

    def _counts(self, part: str, total: Integers, mu_squared: Fraction, square: int) -> tuple[Floats, float]:
        square *= self._times("counts")
        scale = scale_for(square, mu_squared)
        return self._noisy(part, total, scale, square) / RADIUS, scale / RADIUS

    def _times(self, kind: str) -> int:
        return 1 if self.neighbors == "add-remove" else _TIMES[kind]

    def _noisy(self, part: str, total: Integers, scale: int, square: int) -> Floats:
        if not total.size:  # public: the shape of the sums follows from released numbers
            return total.astype(np.float64)
        noisy = noisy_sum(
            total,
            part=part,
            scale=scale,
            sensitivity_squared=square,
            accountant=self.accountant,
            bits=self.bits,
        )
        return noisy.astype(np.float64)
