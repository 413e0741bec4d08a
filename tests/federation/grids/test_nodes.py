"""Who serves whom: cohorts cover all parties and share out evenly, placements reach nodes, and cohorts halve."""

import numpy as np
import pytest
from support.worlds import SYNTHETIC

from federation.grids.nodes import Placement, cohort_size, most_per_node


@pytest.mark.parametrize("parties", [1, 5, 1000, 12345])
@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize(("wanted", "most"), [(None, 4096), (None, 16), (99, 16)])
def test_cohorts_cover_all_parties_and_share_out_evenly(parties, workers, wanted, most):
    size = cohort_size(parties, workers, wanted, most)
    assert 1 <= size <= (most if wanted is None else wanted)
    nodes = Placement(parties, size, SYNTHETIC, 1).contexts()
    assert wanted or len(nodes) <= 2 * workers or parties > 2 * workers * most
    held = [(node.node_config["first-party"], node.node_config["parties"]) for node in nodes]
    assert [first for first, _ in held] == list(np.cumsum([0, *(count for _, count in held[:-1])]))
    assert sum(count for _, count in held) == parties


@pytest.mark.parametrize("rows", [1, 1352, 54021, 10**9])
def test_answers_of_a_node_fit_into_memory(rows):
    assert 16 <= most_per_node(True, rows) <= max(16, 2**24 / rows)
    assert most_per_node(False, rows) == 16
