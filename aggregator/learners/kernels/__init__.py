"""Kernels, exact or by explicit features, between sets of rows."""
