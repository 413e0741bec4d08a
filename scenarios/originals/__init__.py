"""From the files that others publish to those that scenarios read."""
