"""Scores of released models and of baselines on rows that neither app sees."""
