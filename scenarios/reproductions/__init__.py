"""Reproductions of tables and figures of papers: their declarations, runs, comparisons with our values, and pages."""
