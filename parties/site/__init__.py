"""A site in a deployment: its connection to a SuperLink, what it lets in, what it lets out, and what it has spent."""
