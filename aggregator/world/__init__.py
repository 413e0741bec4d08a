"""One world as its jobs see it: its plan, its public rows behind every feature map, and what it asks of the parties."""
