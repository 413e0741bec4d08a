"""Pure array functions: risks and certified minimisers, bags and bins, operations on rows, and the simplex."""
