"""The second of two servers, an organisation of its own: it holds no rows, and takes the masks off sums."""
