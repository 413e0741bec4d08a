"""Which mechanism for labels to use, from public numbers alone."""
