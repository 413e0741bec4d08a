"""Real federations: what their coordinator and their sites need beside the protocols."""
