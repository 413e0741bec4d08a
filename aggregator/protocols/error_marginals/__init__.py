"""Protocol `error_marginals`: rounds of questions about where a hypothesis errs."""
