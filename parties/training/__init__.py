"""Training of the parties' own classifiers, many parties at a time."""
