"""What estimators check of their parameters, bags and rows."""
