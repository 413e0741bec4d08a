"""Linear-odd losses, which see labels only through the mean operator, and minimisers of their risks."""
