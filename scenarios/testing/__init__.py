"""Checks for authors of protocols: `check_protocol`, after the example of scikit-learn's check_estimator."""

from scenarios.testing.checks import CheckFailed, check_protocol, checks

__all__ = ["CheckFailed", "check_protocol", "checks"]
