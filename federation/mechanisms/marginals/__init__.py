"""Mechanisms for counts in bins of each feature, for several queries."""
