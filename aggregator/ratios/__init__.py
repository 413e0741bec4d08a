"""Estimators of class ratios from bags with known label proportions; usable without the rest of the framework."""
