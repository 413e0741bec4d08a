"""What is public in one world, that is one split of the data: its plan, its numbers, its rows behind feature maps."""
