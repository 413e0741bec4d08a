"""Single labels, from a range or of two classes."""
