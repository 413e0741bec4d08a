"""What carries messages between a Flower ServerApp and a Flower ClientApp."""
