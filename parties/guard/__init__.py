"""The guard of a party: what the party checks, declares and pays before it responds."""
