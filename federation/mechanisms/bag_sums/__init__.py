"""Weighted sums of labels over random bags."""
