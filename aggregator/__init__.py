"""The trusted side: sees submissions and public rows only, and releases what a guarantee covers."""

import federation  # noqa: F401 - before anything here imports Flower, whose telemetry it switches off
