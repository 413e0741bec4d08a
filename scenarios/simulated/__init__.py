"""Simulated parties: which rows are whose, what is public, and how parties behave."""
