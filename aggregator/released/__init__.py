"""Files of released models: one per variant and world, readable with numpy alone."""
