from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fake_protocols import KINDS

from federation import registry

if TYPE_CHECKING:
    from fake_estimators import FirstColumn


@pytest.fixture
def protocols(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small fake protocols in place of the installed ones."""
    monkeypatch.setattr(registry, "protocol_names", lambda: sorted(KINDS))
    monkeypatch.setattr(registry, "protocol", KINDS.__getitem__)


@pytest.fixture
def estimators(monkeypatch: pytest.MonkeyPatch) -> type[FirstColumn]:
    """A small fake estimator in place of those that are released; it notes what it embeds."""
    from fake_estimators import FirstColumn

    monkeypatch.setattr("aggregator.ratios.ratio_models.catalogue.load", FirstColumn.from_arrays)
    monkeypatch.setattr(FirstColumn, "embedded", [])
    return FirstColumn
