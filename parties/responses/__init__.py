"""Responses of parties to queries, one module for each family of queries."""
