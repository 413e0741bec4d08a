"""Shared parts of the protocols that regress on labels which parties have made private themselves."""
