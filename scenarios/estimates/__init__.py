"""What a run will cost, found by serving a few of its parties before it begins."""
