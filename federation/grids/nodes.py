"""Flower nodes of a simulation: each serves one cohort of consecutive party ids."""

from __future__ import annotations

from flwr.app import Context, RecordDict

from federation.reference import Reference

_MOST_PER_NODE = 256  # keeps a cohort's answers (votes x auxiliary rows) within tens of megabytes
_SHARES_PER_WORKER = 4  # enough cohorts per worker that a slow one does not leave the others idle


def cohort_size(parties: int, workers: int, parties_per_node: int | None) -> int:
    """Parties behind each node; None chooses by the number of workers. Results do not depend on it."""
    if parties_per_node is not None:
        return min(parties_per_node, parties)
    return max(1, min(_MOST_PER_NODE, -(-parties // (workers * _SHARES_PER_WORKER))))


def halves(context: Context) -> list[Context]:
    """The two halves of a node's cohort as nodes of their own, none when it is a single party."""
    first, count = int(context.node_config["first-party"]), int(context.node_config["parties"])
    if count == 1:
        return []
    middle = count // 2
    return [
        Context(
            context.run_id,
            context.node_id,
            {**context.node_config, "first-party": start, "parties": size},
            context.state,
            context.run_config,
        )
        for start, size in ((first, middle), (first + middle, count - middle))
    ]


def simulated_nodes(parties: int, per_node: int, holdings: Reference, seed: int) -> list[Context]:
    """One context per node with the configuration that `parties.holdings.Cohort` reads."""
    reference = holdings.to_json()
    return [
        Context(
            run_id=1,
            node_id=number,
            node_config={
                "partition-id": number,
                "holdings": reference,
                "first-party": first,
                "parties": min(per_node, parties - first),
                "seed": seed,
            },
            state=RecordDict(),
            run_config={},
        )
        for number, first in enumerate(range(0, parties, per_node), start=1)
    ]
