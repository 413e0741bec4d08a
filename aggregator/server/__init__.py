"""What runs at the aggregator: the app, the one way from a plan to released models, and who failed."""
