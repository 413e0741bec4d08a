"""Sums that nobody sees the parts of: what parties and whoever adds up must agree on."""
