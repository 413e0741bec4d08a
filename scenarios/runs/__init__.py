"""Runs of scenarios: their worlds, and the directory that keeps what they leave."""
