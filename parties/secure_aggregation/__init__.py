"""Secure aggregation at a party: its side of a sum of which no server sees the parts."""
