"""What a scenario file says: its language, its sections, its rules, and the worlds that its sweeps expand to."""
