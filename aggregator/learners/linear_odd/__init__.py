"""Linear-odd losses, and their minimisers over unlabelled rows and a mean of y x."""
