"""Labels and weights that fit noisy marginals: convex problems within bounds."""
