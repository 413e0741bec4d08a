"""Where the kept values are."""

from pathlib import Path

import pytest


@pytest.fixture
def reproductions():
    return Path(__file__).resolve().parents[4] / "docs" / "reproductions"
