"""Public feature maps: what rows pass before anything is learned from them."""
