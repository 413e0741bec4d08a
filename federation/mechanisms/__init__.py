"""Mechanisms, exact accounting and audits of differential privacy, a folder for each family."""
