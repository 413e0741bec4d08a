"""The aggregator's side of an exchange with real sites: what was asked, what came, and the letters in between."""
