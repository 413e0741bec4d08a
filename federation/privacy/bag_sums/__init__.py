"""Weighted sums of labels over bags: exact accounting, calibration and mechanisms. Unit: one label, replaced."""
