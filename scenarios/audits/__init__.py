"""Audits of a scenario's variants end to end, on their worst pairs of neighbours."""
