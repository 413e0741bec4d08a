"""Shared parts of the protocols that learn from classifiers trained by the parties, and whose noise is central."""
