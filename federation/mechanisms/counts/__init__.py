"""Label counts of bags."""
