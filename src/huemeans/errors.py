"""Every exception that huemeans raises on purpose."""


class HuemeansError(Exception):
    """Base class of all errors of this package."""


class InvalidArgument(HuemeansError, ValueError, TypeError):
    """Raised when a public argument, an option or a schema is not what was expected.

    It is a ``ValueError`` and a ``TypeError`` at once, as scikit-learn's own is.
    The message never holds a value taken from rows.
    """


class BudgetExceeded(HuemeansError, RuntimeError):
    """Raised *before* a draw that would spend more privacy than was declared."""


class UnprotectedDirection(HuemeansError, ValueError):
    """Raised when a release would publish a direction that a neighbor can move and no noise covers."""


class InvalidRelease(HuemeansError, ValueError):
    """Raised when a file is not a release, was changed, or contradicts itself."""


class LedgerError(HuemeansError, RuntimeError):
    """Raised when a ledger is locked, is no ledger, or is not as it was written."""
