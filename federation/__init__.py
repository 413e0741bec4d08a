"""The common ground of parties and aggregator: guarantees, messages, mechanisms and the grids that carry them."""
