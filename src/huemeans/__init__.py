"""K-means centroids under differential privacy, with optimally colored noise."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from huemeans.budget import Accountant, Budget
    from huemeans.calibrate import delta_at, epsilon_at, whitened_limit
    from huemeans.discretization import Draws
    from huemeans.domain import Domain
    from huemeans.ellipsoid import Ellipsoid, min_trace_ellipsoid
    from huemeans.errors import (
        BudgetExceeded,
        HuemeansError,
        InvalidArgument,
        InvalidRelease,
        LedgerError,
        UnprotectedDirection,
    )
    from huemeans.forecast import Forecast, plan
    from huemeans.guarantee import Guarantee, PrivacyUnit
    from huemeans.leave_one_out import Differences, differences
    from huemeans.ledger import Ledger
    from huemeans.noise import ColoredGaussian
    from huemeans.private import PrivateKMeans
    from huemeans.release import Release
    from huemeans.tailored import TailoredKMeans

__version__ = "0.1.0.dev0"

_HOMES = {
    "Accountant": "budget",
    "Budget": "budget",
    "BudgetExceeded": "errors",
    "ColoredGaussian": "noise",
    "Differences": "leave_one_out",
    "Domain": "domain",
    "Draws": "discretization",
    "Ellipsoid": "ellipsoid",
    "Forecast": "forecast",
    "Guarantee": "guarantee",
    "HuemeansError": "errors",
    "InvalidArgument": "errors",
    "InvalidRelease": "errors",
    "Ledger": "ledger",
    "LedgerError": "errors",
    "PrivacyUnit": "guarantee",
    "PrivateKMeans": "private",
    "Release": "release",
    "TailoredKMeans": "tailored",
    "UnprotectedDirection": "errors",
    "delta_at": "calibrate",
    "differences": "leave_one_out",
    "epsilon_at": "calibrate",
    "min_trace_ellipsoid": "ellipsoid",
    "plan": "forecast",
    "whitened_limit": "calibrate",
}
"""Which module holds each public name; it is imported when the name is first used."""

__all__ = [
    "Accountant",
    "Budget",
    "BudgetExceeded",
    "ColoredGaussian",
    "Differences",
    "Domain",
    "Draws",
    "Ellipsoid",
    "Forecast",
    "Guarantee",
    "HuemeansError",
    "InvalidArgument",
    "InvalidRelease",
    "Ledger",
    "LedgerError",
    "PrivacyUnit",
    "PrivateKMeans",
    "Release",
    "TailoredKMeans",
    "UnprotectedDirection",
    "__version__",
    "delta_at",
    "differences",
    "epsilon_at",
    "min_trace_ellipsoid",
    "plan",
    "whitened_limit",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for: ``huemeans --help`` must not wait for scikit-learn."""
    if name not in _HOMES:
        raise AttributeError(f"module 'huemeans' has no attribute {name!r}")
    value = getattr(import_module(f"huemeans.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted([*globals(), *_HOMES])
