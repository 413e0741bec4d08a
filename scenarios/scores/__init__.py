"""What released models and baselines are worth on rows that neither app sees."""
