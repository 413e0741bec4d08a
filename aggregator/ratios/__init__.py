"""Estimators of class ratios from bags with known label proportions; usable on their own; and their job."""
