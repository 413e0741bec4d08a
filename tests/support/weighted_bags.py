"""The bags that tests of weighted sums release: the range of labels, how many bags, and how many records in each."""

RANGE = (-1.0, 3.0)
M, K = 4000, 6
