"""K-means centroids under differential privacy, with optimally colored noise."""

from huemeans.budget import Accountant, Budget
from huemeans.calibrate import delta_at, epsilon_at, whitened_limit
from huemeans.domain import Domain
from huemeans.errors import BudgetExceeded, HuemeansError, InvalidArgument, UnprotectedDirection
from huemeans.guarantee import Guarantee, PrivacyUnit
from huemeans.noise import ColoredGaussian

__version__ = "0.1.0.dev0"

__all__ = [
    "Accountant",
    "Budget",
    "BudgetExceeded",
    "ColoredGaussian",
    "Domain",
    "Guarantee",
    "HuemeansError",
    "InvalidArgument",
    "PrivacyUnit",
    "UnprotectedDirection",
    "__version__",
    "delta_at",
    "epsilon_at",
    "whitened_limit",
]
