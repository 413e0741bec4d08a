"""A small stream: rows of five months in a file, of which each release learns from the two months before its own."""

from pathlib import Path
from typing import Any

import numpy as np

MONTHS, A_MONTH = 5, 90


def stream_file(folder: Path) -> Path:
    """A CSV file with 90 rows of each of the months January to May 2023, mixed."""
    random = np.random.default_rng(5)
    n = MONTHS * A_MONTH
    month, day = np.arange(n) % MONTHS + 1, random.integers(1, 29, size=n)
    label = random.integers(2, size=n)
    rows = random.normal(size=(n, 2)) + 2.0 * label[:, None]
    path = folder / "stream.csv"
    lines = (
        f"2023-{m:02}-{d:02},{x:.6f},{y:.6f},{'ab'[c]}" for m, d, (x, y), c in zip(month, day, rows, label, strict=True)
    )
    path.write_text("\n".join(["day,x,y,class", *lines]) + "\n")
    return path


def stream(path: Path, **changes: Any) -> dict[str, Any]:
    """The scenario of that file."""
    return {
        "name": "stream",
        "data": {"source": str(path), "label": "class", "time": "day", "auxiliary": 20},
        "parties": {"count": 10},
        "baselines": False,
        "protocols": [{"kind": "soft_vote"}, {"kind": "soft_vote", "noise": "gaussian"}, {"kind": "constant"}],
        "privacy": {"epsilon": 1, "delta": 1e-6},
        "trials": {"splits": 2, "noise": 2, "periods": {"every": "month"}, "window": 2},
        **changes,
    }
