"""What a protocol says of itself, and what an aggregator does with it."""
