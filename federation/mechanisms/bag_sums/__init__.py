"""Mechanisms for weighted sums of labels over random bags."""
