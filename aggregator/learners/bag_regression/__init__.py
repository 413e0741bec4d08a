"""Regressions from bags of rows and their noisy sums of labels."""
