"""Collects what parties say, and refuses what no honest party can say."""
