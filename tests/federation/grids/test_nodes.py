"""Who serves whom: cohorts cover all parties and share out evenly, placements reach nodes, and cohorts halve."""

import numpy as np
import pytest
from flwr.app import Context, RecordDict
from support.flower_nodes import RUN
from support.worlds import SYNTHETIC

from federation.contract.plugins import Reference
from federation.engines.nodes import Placement, cohort_size, halves, in_company, most_per_node, node_config


@pytest.mark.parametrize("parties", [1, 5, 1000, 12345])
@pytest.mark.parametrize("workers", [1, 2, 8])
@pytest.mark.parametrize(("wanted", "most"), [(None, 4096), (None, 16), (99, 16)])
def test_cohorts_cover_all_parties_and_share_out_evenly(parties, workers, wanted, most):
    size = cohort_size(parties, workers, wanted, most)
    assert 1 <= size <= (most if wanted is None else wanted)
    nodes = Placement(parties, size, SYNTHETIC, 1).contexts()
    assert wanted or len(nodes) <= workers or parties > workers * most
    held = [(node.node_config["first-party"], node.node_config["parties"]) for node in nodes]
    assert [first for first, _ in held] == list(np.cumsum([0, *(count for _, count in held[:-1])]))
    assert sum(count for _, count in held) == parties


@pytest.mark.parametrize("rows", [1, 1352, 54021, 10**9])
def test_answers_of_a_node_fit_into_memory(rows):
    assert 16 <= most_per_node(True, rows) <= max(16, 2**24 / rows)
    assert most_per_node(False, rows) == 16


@pytest.mark.usefixtures("flower_process")
def test_a_published_placement_reads_back():
    placement = Placement(10, 4, Reference("support.synthetic:Parties", {"broken": [1]}), 3)
    path = placement.publish(RUN)
    assert path.parent.stat().st_mode & 0o77 == 0  # nobody else may write there
    for partition in range(placement.nodes):
        found = node_config(Context(RUN, 1, {"partition-id": partition}, RecordDict(), {}))
        assert found == placement.config(partition)


def test_a_node_that_knows_its_parties_asks_for_no_placement():
    config = {"partition-id": 0, "holdings": "its own"}
    assert node_config(Context(RUN, 1, config, RecordDict(), {})) == config
    assert node_config(Context(RUN, 1, {}, RecordDict(), {})) == {}


@pytest.mark.usefixtures("flower_process")
def test_without_a_published_placement_a_configuration_is_what_it_is():
    assert node_config(Context(RUN, 1, {"partition-id": 0}, RecordDict(), {})) == {"partition-id": 0}


def test_nodes_of_consecutive_parties_are_told_of_their_company():
    nodes = Placement(10, 3, SYNTHETIC, 1).contexts()
    together = in_company(nodes[1:])
    told = [(node.node_config["first-of-company"], node.node_config["company"]) for node in together]
    assert told == [(3, 7)] * 3
    for node, before in zip(together, nodes[1:], strict=True):
        assert node.state is before.state  # a node keeps what it has noted
        assert node.node_config.items() >= before.node_config.items()
    assert in_company([nodes[0], nodes[2]]) == [nodes[0], nodes[2]]
    assert in_company([]) == []


@pytest.mark.parametrize("count", [1, 2, 3, 8, 13])
def test_cohorts_halve_down_to_single_parties(count):
    waiting, alone = Placement(count, count, SYNTHETIC, 1).contexts(), []
    while waiting:
        node = waiting.pop()
        parts = halves(node)
        sizes = [part.node_config["parties"] for part in parts]
        assert not parts or (sum(sizes) == node.node_config["parties"] and max(sizes) - min(sizes) <= 1)
        assert all(part.node_config["seed"] == 1 for part in parts)
        waiting += parts
        if not parts:
            alone.append(node.node_config["first-party"])
    assert sorted(alone) == list(range(count))
