"""What a user gets without choosing, beside what was the default before and what else could be chosen."""
