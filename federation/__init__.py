"""The common ground of parties and aggregator: guarantees, messages, mechanisms and the grids that carry them."""

__version__ = "0.1.0"
