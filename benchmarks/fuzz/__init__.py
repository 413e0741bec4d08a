"""Mutated scenarios, data files and messages, tried by the hundred thousand: `python -m benchmarks.fuzz`."""
