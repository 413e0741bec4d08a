"""Noise for any vector: its law, its sampler on integers, and its exact calibration."""
