"""A generator of a symmetric proper loss of one's own."""

import numpy as np

from aggregator.learners.linear_odd.losses import Generator

MIXED = Generator(
    "mixed",
    lambda x: (x**2 + np.hypot(1, x) + x) / 2,
    lambda x: x + x / np.hypot(1, x) / 2 + 0.5,
    lambda x: 1 + np.hypot(1, x) ** -3.0 / 2,
    (1.0, 1.5),
    bounded_slope=False,
)
