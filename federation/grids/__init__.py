"""What carries messages between a Flower ServerApp and a Flower ClientApp."""

import os

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")  # read when Flower is imported, which only happens below here
