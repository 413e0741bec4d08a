"""What the protocols share that learn from the classifiers which parties have trained, and whose noise is central."""
