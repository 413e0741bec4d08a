"""A world that is quick to sample."""

import pytest

from scenarios.runs.trial import worlds
from scenarios.settings.schema import resolve

DOCUMENT = {
    "name": "estimated",
    "data": {"source": "crowd", "auxiliary": 40, "test": 60, "features": ["constant", "unit_norm"]},
    "parties": {"count": 3000, "rows": 5},
    "protocols": [{"kind": "soft_vote", "submit": "votes"}, {"kind": "individual"}],
    "baselines": False,
    "privacy": {"epsilon": [1, 10]},
    "trials": {"splits": 1, "noise": 1},
}


@pytest.fixture
def scenario():
    """The scenario with these settings."""
    return lambda *settings: resolve(DOCUMENT, settings)


@pytest.fixture
def world(scenario):
    """Its first world."""
    return lambda *settings: worlds(scenario(*settings), None)[0]
