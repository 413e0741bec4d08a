"""Settings of a scenario file: its language, its sections, its rules, and the trials that its sweeps expand to."""
