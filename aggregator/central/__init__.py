"""Noise that the aggregator makes: what is perturbed, calibrated, charged and drawn."""
