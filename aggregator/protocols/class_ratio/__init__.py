"""Protocol `class_ratio`: class ratios of unlabelled sets from private label counts of bags."""
