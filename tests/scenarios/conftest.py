from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.fake_protocols import fake, fakes_of

from aggregator.contract import registry

if TYPE_CHECKING:
    from support.fake_estimators import FirstColumn


@pytest.fixture
def protocols(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small fake protocols in place of the installed ones; they are checked as those are, every time anew."""
    monkeypatch.setattr(registry, "installed", fakes_of)
    monkeypatch.setattr(registry, "find", fake)
    monkeypatch.setattr(registry, "_checked", registry._checked.__wrapped__)


@pytest.fixture
def installed_protocols(protocols: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The installed protocols again, among tests that have fakes in their place."""
    monkeypatch.undo()


@pytest.fixture
def estimators(monkeypatch: pytest.MonkeyPatch) -> type[FirstColumn]:
    """A small fake estimator in place of those that are released; it notes what it embeds."""
    from support.fake_estimators import FirstColumn

    monkeypatch.setattr("aggregator.releases.estimator_models.catalogue.load", FirstColumn.from_arrays)
    monkeypatch.setattr(FirstColumn, "embedded", [])
    return FirstColumn


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """Makes the directory of a finished run."""
    from support.finished_runs import maker

    return maker(tmp_path)
