"""The worst pairs of neighbours, on which audits run the aggregator end to end."""
