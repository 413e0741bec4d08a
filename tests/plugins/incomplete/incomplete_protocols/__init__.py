"""Protocols of another package that are incomplete, or say of themselves what is not so."""
