"""Protocol `soft_vote`: votes of parties on public rows, and noise on what they say together."""
