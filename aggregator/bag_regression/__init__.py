"""Regression from weighted sums of the labels of bags: closed form and neural."""
