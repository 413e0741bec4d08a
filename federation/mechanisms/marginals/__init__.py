"""Counts in bins of each feature, for several queries."""
