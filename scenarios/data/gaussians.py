"""The data set `gaussians`: generated rows of known difficulty, enough of them for a hundred thousand parties."""

from __future__ import annotations

import numpy as np

from federation.contract.randomness import generator
from scenarios.data.tables import Table

ROWS, COLUMNS, CLASSES = 600_000, 10, 3
DISTANCE = 2.0  # of each class's centre from the origin
_SEED = 2016  # of the data set, which is the same in every scenario


def gaussians() -> Table:
    """`ROWS` rows x = DISTANCE e_c + z of `CLASSES` equally probable classes c, with z standard normal in R^COLUMNS.

    The largest of the first three columns is the best guess of the class; it is right with probability
    E[Phi(DISTANCE + z)^2] = .8658, z standard normal, which bounds every classifier.
    """
    random = generator(_SEED, "gaussians")
    labels = random.integers(CLASSES, size=ROWS)
    rows = random.standard_normal((ROWS, COLUMNS), dtype=np.float32)
    rows[np.arange(ROWS), labels] += DISTANCE
    columns = tuple(f"x{i}" for i in range(COLUMNS))
    return Table("gaussians", columns, tuple("abc"), labels, (rows,))
