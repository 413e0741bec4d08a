"""The server's side of secure aggregation: sums of which the server sees no single part."""
