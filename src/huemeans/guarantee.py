"""What a release promises, in types that print one plain sentence."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from typing import Final, Literal

from huemeans import checks
from huemeans.calibrate import delta_at, epsilon_at

Neighbors = Literal["add-remove", "replace-one"]
NEIGHBORS: Final = ("add-remove", "replace-one")

Notion = Literal["dp", "pdp-at-table", "dp-at-table"]
NOTIONS: Final = ("dp", "pdp-at-table", "dp-at-table")

SEEDED_WARNING: Final = "NOT PRIVATE: the noise was seeded, so whoever knows the seed can subtract it."


@dataclass(frozen=True)
class PrivacyUnit:
    """Whose presence is hidden: how two neighboring tables may differ.

    Examples
    --------
    >>> print(PrivacyUnit("add-remove"))
    one row, added or removed
    >>> print(PrivacyUnit("replace-one", max_rows=3))
    one person with at most 3 rows, each replaced in place (the number of rows is public)
    """

    neighbors: Neighbors
    """``"add-remove"``: one table has the rows that the other lacks.  ``"replace-one"``: same size."""

    max_rows: int = 1
    """The most rows that one person has."""

    def __post_init__(self) -> None:
        """Refuse an unknown relation or a number of rows below 1."""
        checks.choice("neighbors", self.neighbors, NEIGHBORS)
        hint = "Say how many rows one person has at most"
        rows = checks.integer("max_rows", self.max_rows, least=1, remedy=hint)
        object.__setattr__(self, "max_rows", rows)

    def __str__(self) -> str:
        """Say the unit in words."""
        who = "one row" if self.max_rows == 1 else f"one person with at most {self.max_rows} rows"
        each = "" if self.max_rows == 1 else "each " if self.neighbors == "replace-one" else "all "
        if self.neighbors == "add-remove":
            return f"{who}, {each}added or removed"
        return f"{who}, {each}replaced in place (the number of rows is public)"


@dataclass(frozen=True)
class Guarantee:
    """The promise of one release.

    Examples
    --------
    >>> print(Guarantee("dp", 1.0, 1e-6, PrivacyUnit("add-remove")))  # doctest: +NORMALIZE_WHITESPACE
    (epsilon=1, delta=1e-06)-differential privacy for every two tables that differ by
    one row, added or removed.
    """

    notion: Notion
    """``"dp"``: for every pair of neighbors.  ``"pdp-at-table"`` and ``"dp-at-table"``: for the removal of
    rows from one table only, as a bound on P(loss > epsilon) or on the hockey-stick divergence."""

    epsilon: float
    delta: float
    unit: PrivacyUnit

    mu: float | None = None
    """The Gaussian-DP parameter, or the whitened sensitivity at the table, behind epsilon and delta."""

    declared_epsilon: float | None = None
    """What was asked for, where the noise keeps another epsilon."""

    fixed: tuple[str, ...] = ()
    """What the statement holds fixed and treats as public."""

    not_covered: tuple[str, ...] = ()
    """What the statement says nothing about."""

    seeded: bool = False
    """Whether the noise came from a seed, in which case there is no privacy."""

    def __post_init__(self) -> None:
        """Refuse a promise that is no promise."""
        checks.choice("notion", self.notion, NOTIONS)
        if not isinstance(self.unit, PrivacyUnit):
            checks.refuse("unit", repr(self.unit), "a PrivacyUnit", "Pass PrivacyUnit('add-remove')")
        checks.number("epsilon", self.epsilon, above=-5e-324, expected="a finite number, 0 or above",
                      remedy=checks.EPSILON_HINT)  # fmt: skip
        checks.delta(self.delta)
        for name in ("fixed", "not_covered"):
            if isinstance(getattr(self, name), str):
                checks.refuse(name, repr(getattr(self, name)), "a tuple of strings", "Add a comma")
        if self.mu is not None and not self.mu >= 0:
            checks.refuse("mu", repr(self.mu), "a number, 0 or above", "Leave it out if unknown")

    @property
    def is_private(self) -> bool:
        """Whether the promise holds at all: seeded noise promises nothing."""
        return not self.seeded

    @property
    def hockey_stick(self) -> float | None:
        """The delta of (epsilon, delta)-DP at the same noise, where mu is known; PDP implies it."""
        return None if self.mu is None else delta_at(self.mu, self.epsilon, "dp")

    @property
    def hockey_stick_epsilon(self) -> float:
        """The epsilon of (epsilon, delta)-DP at the same noise and delta, where mu is known; else epsilon."""
        return self.epsilon if self.mu is None else epsilon_at(self.mu, self.delta, "dp")

    def __str__(self) -> str:
        """Say the whole promise in one sentence, and in more what it holds fixed, breaks and leaves out."""
        pair = f"(epsilon={_up(self.epsilon)}, delta={_up(self.delta)})"
        if self.notion == "dp":
            sentences = [f"{pair}-differential privacy for every two tables that differ by {self.unit}"]
        else:
            kind = (
                "probabilistic differential privacy"
                if self.notion == "pdp-at-table"
                else "indistinguishability"
            )
            sentences = [f"{pair}-{kind} at this one table, for the removal of any one of its rows"]
        if self.fixed:
            sentences[0] += f", holding fixed and treating as public {_listed(self.fixed)}"
        if self.notion != "dp":
            sentences.append("This is not differential privacy")
        if self.notion == "pdp-at-table" and self.hockey_stick is not None:
            sentences.append(
                f"At the same noise, hockey-stick delta is {self.hockey_stick:.3g} at this epsilon and "
                f"hockey-stick epsilon {_up(self.hockey_stick_epsilon)} at this delta; "
                "unlike these, probabilistic differential privacy is not closed under post-processing"
            )
        if self.declared_epsilon is not None:
            verdict = "is not kept" if self.declared_epsilon < self.epsilon else "is more than is spent"
            sentences.append(f"Epsilon {self.declared_epsilon:.6g} was declared and {verdict}")
        if self.not_covered:
            sentences.append(f"Not covered: {'; '.join(self.not_covered)}")
        return " ".join([SEEDED_WARNING] * self.seeded + [f"{sentence}." for sentence in sentences])


def _up(value: float) -> str:
    """Print six digits, rounded up: no promise is made to look stronger than it is."""
    decimal = Context(prec=6, rounding=ROUND_CEILING).create_decimal(repr(float(value)))
    return f"{float(decimal):.6g}"


def _listed(items: tuple[str, ...]) -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]
