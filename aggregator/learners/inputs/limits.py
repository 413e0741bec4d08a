"""The largest sizes that may be asked for: beyond them no machine has the memory, or anybody the time."""

from __future__ import annotations

from federation.contract.errors import InputError
from federation.contract.limits import MOST_FEATURES

MOST_BINS = 10_000  # of one feature
MOST_WIDTH = 2**12  # of a hidden layer, as of a hypothesis (`federation.questions.hypotheses`)
MOST_EPOCHS = 100_000
MOST_ROUNDS = 10_000
MOST_TRIALS = 100_000  # splits, or noise draws of a release


def require_waves(dimensions: int) -> None:
    """Raises `InputError` unless `dimensions` is an even number of random features: a cosine and a sine each."""
    if not 2 <= dimensions <= MOST_FEATURES or dimensions % 2:
        raise InputError(f"dimensions must be an even number from 2 to {MOST_FEATURES}, got {dimensions}")
