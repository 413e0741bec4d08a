"""Estimates of what a mechanism gives away, from its outputs on two neighbouring inputs."""
