"""Papers: for each the scenarios behind its tables and figures, and what of ours stands for what of it."""
