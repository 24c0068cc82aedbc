"""Settings shared by all tests."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "huemeans", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("huemeans")
