"""Checks of the parameters, bags and rows that estimators are given."""
