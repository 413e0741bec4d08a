"""Mechanisms for single labels, from a range or of two classes."""
