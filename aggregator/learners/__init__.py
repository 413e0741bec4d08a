"""Estimators that are usable on their own, as objects of scikit-learn, and the mathematics below them."""
