"""The page on three sites, followed as far as the collection."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from support.trials import ROOT, Trial, serving


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The page on three sites, followed up to the collection, and a SuperLink that goes on."""
    folder = tmp_path_factory.mktemp("trial")
    before = Path.cwd()
    os.chdir(folder)
    found = Trial(folder, **{"seconds = 12/": "seconds = 20/"})  # the machine may be busy
    try:
        found.follow((ROOT / "docs/deployment/three-sites.md").read_text(), until="federation collect")
        with serving(folder / "trial") as link:
            found.link = link
            yield found
    finally:
        found.close()
        os.chdir(before)
