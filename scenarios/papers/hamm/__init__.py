"""Hamm, Cao and Belkin 2016."""
