"""Files that runs read."""

from pathlib import Path

import numpy as np
import pytest
from support import released_lines
from support.small_runs import document

import scenarios
from scenarios.runs import runner


@pytest.fixture
def own_file(tmp_path: Path, rng: np.random.Generator) -> Path:
    """A file with real labels."""
    return released_lines.own_file(tmp_path, rng)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> runner.Run:
    """A finished run of the small scenario."""
    return scenarios.run(document(), out=tmp_path_factory.mktemp("run") / "out")
