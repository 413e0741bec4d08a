"""A protocol of another package that learns in rounds: noisy gradient steps of a linear classifier."""
