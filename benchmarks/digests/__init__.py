"""Digests of what small scenarios release, to show that a change of the code changed no byte of it."""
