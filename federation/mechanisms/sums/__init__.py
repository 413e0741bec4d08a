"""Noise on sums: row sums and second moments of a party, vector and bag totals over parties, and shares of noise."""
