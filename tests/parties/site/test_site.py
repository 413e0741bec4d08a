"""A site that keeps to its own rules, whatever letters say."""
