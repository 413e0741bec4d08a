"""The aggregator's side of an exchange with real sites: state on disk, signed messages, and secure aggregation."""
