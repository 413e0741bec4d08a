"""Collectors of the responses of parties, which refuse responses that no honest party can send."""
