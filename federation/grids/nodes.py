"""Flower nodes of a simulation: each serves one cohort of consecutive party ids.

A node's own configuration says which. Stock Flower configures its simulated nodes with a partition number only, so a
placement can also be published to the nodes of one run on this machine, as a file in Flower's home.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from flwr.app import Context, RecordDict

from federation.contract.reference import Reference

_ANSWERS = 1 << 24  # entries that one node answers at most: larger arrays are returned to the system and fetched again
_MOST_BATCHED, _MOST_ALONE = 4096, 16


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def most_per_node(batched: bool, rows: int) -> int:
    """Parties that it pays to put behind one node when each answers about `rows` public rows.

    Parties that are trained together gain from company; those trained one by one do not, and few of them per node
    show progress and share out evenly.
    """
    return min(_MOST_BATCHED, max(_MOST_ALONE, _ANSWERS // rows)) if batched else _MOST_ALONE


def cohort_size(parties: int, workers: int, wanted: int | None, most: int) -> int:
    """Parties behind each node: `wanted`, or at most `most` in equally many nodes for each worker when None.

    Results do not depend on it. Parties that are trained together take less time each the more they are.

    Examples:
        >>> cohort_size(1000, workers=4, wanted=None, most=4096), cohort_size(1000, workers=4, wanted=None, most=16)
        (250, 16)
    """
    if wanted is not None:
        return min(wanted, parties)
    shares = -(-parties // (workers * most))
    return -(-parties // (workers * shares))


@dataclass(frozen=True)
class Placement:
    """Who serves whom in a simulated world: partition i the parties i*per_node to (i+1)*per_node - 1.

    `holdings` is the provider of the parties' rows (`parties.holdings.cohort.Provider`), `seed` keys their randomness.

    Examples:
        >>> placement = Placement(parties=10, per_node=4, holdings=Reference("builtins:dict"), seed=1)
        >>> [(node["first-party"], node["parties"]) for node in map(placement.config, range(placement.nodes))]
        [(0, 4), (4, 4), (8, 2)]
    """

    parties: int
    per_node: int
    holdings: Reference
    seed: int

    @property
    def nodes(self) -> int:
        """How many nodes serve a party."""
        return -(-self.parties // self.per_node)

    def config(self, partition: int) -> dict[str, Any]:
        """The configuration of a node that `parties.holdings.cohort.Cohort` reads."""
        first = partition * self.per_node
        return {
            "partition-id": partition,
            "holdings": self.holdings.to_json(),
            "first-party": first,
            "parties": min(self.per_node, self.parties - first),
            "seed": self.seed,
        }

    def contexts(self) -> list[Context]:
        """One context per node; node n is partition n - 1."""
        return [Context(1, number + 1, self.config(number), RecordDict(), {}) for number in range(self.nodes)]

    def publish(self, run_id: int) -> Path:
        """Tell the nodes of a Flower run on this machine; returns the file, for the caller to remove after the run."""
        path = _published(run_id)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        record = [self.parties, self.per_node, self.holdings.to_json(), self.seed]
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(record))
        partial.replace(path)
        return path


def _published(run_id: int) -> Path:
    home = os.environ.get("FLWR_HOME")
    return (Path(home) if home else Path.home() / ".flwr") / "federation" / f"{run_id}.json"


def node_config(context: Context) -> Mapping[str, Any]:
    """A node's own configuration; what it lacks comes from the placement published for its run, if there is one."""
    config: Mapping[str, Any] = context.node_config
    if "holdings" in config or "partition-id" not in config:
        return config
    try:
        parties, per_node, holdings, seed = json.loads(_published(context.run_id).read_text())
    except OSError:
        return config
    return Placement(parties, per_node, Reference.from_json(holdings), seed).config(int(config["partition-id"]))


def in_company(contexts: Sequence[Context]) -> list[Context]:
    """The same nodes, told whose parties are served by their process in a row: those may be trained together.

    Nodes of consecutive parties, in order; of others each is told nothing.
    """
    served = [(int(node.node_config["first-party"]), int(node.node_config["parties"])) for node in contexts]
    if not served or any(first + count != following for (first, count), (following, _) in pairwise(served)):
        return list(contexts)
    company = {"first-of-company": served[0][0], "company": sum(count for _, count in served)}
    return [replace(context, node_config={**context.node_config, **company}) for context in contexts]


def halves(context: Context) -> list[Context]:
    """The two halves of a node's cohort as nodes of their own, none when it is a single party."""
    first, count = int(context.node_config["first-party"]), int(context.node_config["parties"])
    if count == 1:
        return []
    middle = count // 2
    return [
        replace(context, node_config={**context.node_config, "first-party": start, "parties": size})
        for start, size in ((first, middle), (first + middle, count - middle))
    ]
