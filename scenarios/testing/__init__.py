"""For authors of protocols: `check_protocol` holds one against its contract, as scikit-learn's check_estimator does."""

from scenarios.testing.checks import CheckFailed, check_protocol, checks

__all__ = ["CheckFailed", "check_protocol", "checks"]
