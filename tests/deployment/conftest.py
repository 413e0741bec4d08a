"""The page on three sites, followed as far as the collection."""

from typing import Any

import pytest
from support.trials import following, serving


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The page on three sites, followed up to the collection, and a SuperLink that goes on."""
    folder = tmp_path_factory.mktemp("trial")
    slow = {"seconds = 12/": "seconds = 20/"}  # the machine may be busy
    with following(folder, until="federation collect", **slow) as found, serving(folder / "trial") as link:
        found.link = link
        yield found
