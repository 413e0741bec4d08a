"""Noise on the sum of y x over rows x and labels y = 1 or -1, whole or in shares (Patrini, Nielsen, Nock 2015)."""
