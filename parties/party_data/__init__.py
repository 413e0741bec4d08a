"""The rows of a node's parties, and how one party's fault stays its own."""
