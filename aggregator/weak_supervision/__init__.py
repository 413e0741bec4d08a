"""Weakly supervised linear classification through estimates of the mean operator, usable on its own; and its job."""
