"""The server process of the aggregator: the app, the releases of all variants of a plan, and their failures."""
