"""Linear classifiers from the mean of y x, noisy labels or label proportions of bags."""
