from __future__ import annotations

import pytest
from fake_protocols import KINDS

from federation import registry


@pytest.fixture
def protocols(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small fake protocols in place of the installed ones."""
    monkeypatch.setattr(registry, "protocol_names", lambda: sorted(KINDS))
    monkeypatch.setattr(registry, "protocol", KINDS.__getitem__)
