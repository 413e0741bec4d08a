"""Engines that carry messages between a Flower ServerApp and a Flower ClientApp."""
