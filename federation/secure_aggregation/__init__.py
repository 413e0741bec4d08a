"""Secure aggregation: the plan, the masks and the messages on which parties and servers must agree."""
