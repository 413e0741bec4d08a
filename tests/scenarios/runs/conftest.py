"""Files that runs read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import released_lines


@pytest.fixture
def own_file(tmp_path: Path, rng: np.random.Generator) -> Path:
    """A file with real labels."""
    return released_lines.own_file(tmp_path, rng)
