"""Privacy accounting: the composition of several releases, sensitivities, and private selection."""
