"""Labels, weights and places of noise that tests of several mechanisms release."""

import numpy as np
import pytest
from support.weighted_bags import RANGE, K, M


@pytest.fixture(scope="module")
def drawn() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels in the range, Gaussian weights and noisy places, (m, k) each."""
    rng = np.random.default_rng(3)
    return rng.uniform(*RANGE, (M, K)), rng.normal(size=(M, K)), rng.random((M, K)) < 0.5
