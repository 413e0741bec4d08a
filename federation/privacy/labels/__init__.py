"""Labels made private one by one, in a declared public range. Unit: one label, replaced; features are public."""
