"""Regressions from labels that parties have made private themselves."""
