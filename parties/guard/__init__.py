"""What a party checks, declares and pays before it answers."""
