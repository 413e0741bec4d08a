"""Files of the models that leave the aggregator, with their guarantees."""
