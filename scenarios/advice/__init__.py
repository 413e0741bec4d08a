"""Advice on one's own data: public numbers first, then a pilot, and a scenario that runs."""
