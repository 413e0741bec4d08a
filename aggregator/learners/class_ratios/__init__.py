"""Estimators of class ratios from bags of rows with noisy label counts."""
