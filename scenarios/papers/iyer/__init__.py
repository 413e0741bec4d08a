"""Iyer, Nath and Sarawagi 2016."""
