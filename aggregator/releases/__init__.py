"""What leaves the aggregator: models, with their guarantee, in files."""
