"""Mechanisms for the label counts of bags."""
