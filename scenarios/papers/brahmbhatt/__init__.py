"""Brahmbhatt et al. 2023."""
