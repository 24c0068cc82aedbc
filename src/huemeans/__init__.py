"""K-means centroids under differential privacy, with optimally colored noise."""

from huemeans.budget import Accountant, Budget
from huemeans.calibrate import delta_at, epsilon_at, whitened_limit
from huemeans.discretization import Draws
from huemeans.domain import Domain
from huemeans.ellipsoid import Ellipsoid, min_trace_ellipsoid
from huemeans.errors import BudgetExceeded, HuemeansError, InvalidArgument, UnprotectedDirection
from huemeans.forecast import Forecast, plan
from huemeans.guarantee import Guarantee, PrivacyUnit
from huemeans.leave_one_out import Differences, differences
from huemeans.noise import ColoredGaussian
from huemeans.private import PrivateKMeans
from huemeans.tailored import TailoredKMeans

__version__ = "0.1.0.dev0"

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
    "PrivacyUnit",
    "PrivateKMeans",
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
