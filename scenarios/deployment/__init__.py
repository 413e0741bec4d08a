"""Federations of real sites: what `federation deploy` and `federation collect` make, start and look after."""
