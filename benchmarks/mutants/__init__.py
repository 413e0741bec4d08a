"""Mutants: the product with one small error each, to show which errors no test would notice."""
