"""A protocol of another package: noisy sums of the rows of each class, and the nearest of their means."""
