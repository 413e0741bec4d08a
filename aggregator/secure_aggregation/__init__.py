"""The server's side of a sum that nobody sees the parts of."""
