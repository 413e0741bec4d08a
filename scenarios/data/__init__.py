"""Data sets by name and one's own files, as tables of raw numbers."""
