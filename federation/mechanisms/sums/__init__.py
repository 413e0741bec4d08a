"""Sums of y x over the rows of a party."""
