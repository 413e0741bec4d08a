"""Lacombe, Jetley and Sebag 2021."""
