"""Estimates of what a run will cost, measured by serving a few of its parties before the run begins."""
