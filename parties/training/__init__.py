"""How parties train their own classifiers, many at a time."""
