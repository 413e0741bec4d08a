"""Signed queries and sealed responses between an aggregator and a site that trust no carrier of messages."""
