"""Mechanisms, their exact accounting and calibration, composition, and the statistical audit."""
