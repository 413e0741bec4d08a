"""What runs at a party: the app of its node."""
