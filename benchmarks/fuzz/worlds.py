"""Small worlds of every protocol: real questions, answers, plans and released models to begin from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from aggregator.contract.protocol import Protocol
from aggregator.contract.registry import protocol
from aggregator.server.releasing import Inquiry
from aggregator.server.variants import Variants
from aggregator.trial.plan import TrialPlan
from aggregator.trial.trial import Views, World
from federation.engines.nodes import Placement
from scenarios.testing import small_trials as small

PER_NODE = 2  # parties

# Between them they ask every question that is installed, and release every kind of model.
WORLDS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "statistic": ("soft_vote", {}),
    "votes": ("soft_vote", {"submit": "votes"}),
    "probabilities": ("soft_vote", {"submit": "votes", "ballot": "probabilities"}),
    "majority_vote": ("majority_vote", {}),
    "parameter_average": ("parameter_average", {}),
    "label_sums": ("label_sums", {}),
    "row_sums": ("label_sums", {"protect": "row"}),
    "private_labels": ("private_labels", {}),
    "weighted_lba": ("weighted_lba", {"size": 4}),
    "noisy_weighted_llp": ("noisy_weighted_llp", {"size": 4}),
    "mean_operator": ("mean_operator", {}),
    "row_mean_operator": ("mean_operator", {"protect": "row"}),
    "class_ratio": ("class_ratio", {"estimator": "mmd", "dimensions": 8}),
    "class_means": ("class_ratio", {"estimator": "whitened", "submit": "embedding", "dimensions": 8}),
    "row_class_means": (
        "class_ratio",
        {"estimator": "whitened", "submit": "embedding", "noise": "gaussian", "protect": "row", "dimensions": 8},
    ),
    "count_totals": ("class_ratio", {"estimator": "mmd", "dimensions": 8, "trust": "secure"}),
    "embedding_totals": (
        "class_ratio",
        {"estimator": "whitened", "submit": "embedding", "dimensions": 8, "trust": "secure"},
    ),
    "error_marginals": ("error_marginals", {}),
    "statistic_sum": ("soft_vote", {"trust": "secure"}),
    "parameter_sum": ("parameter_average", {"trust": "secure"}),
}


@dataclass(frozen=True)
class SmallWorld:
    """A world of `WORLDS` by name, with its files in a folder of its own."""

    name: str
    folder: Path

    @property
    def found(self) -> type[Protocol]:
        """Its protocol."""
        return protocol(WORLDS[self.name][0])

    @cached_property
    def plan(self) -> TrialPlan:
        """What the aggregator is asked to do; written beside where its releases go."""
        kind, options = WORLDS[self.name]
        common = options.get("trust") == "secure"  # else bags could not be added up
        folder = self.folder / self.name
        return small.plan(self.found, kind, options, folder, parties_per_node=PER_NODE, common_bags=common)

    @property
    def placement(self) -> Placement:
        """Who serves whom."""
        return Placement(small.PARTIES, PER_NODE, small.provider(self.found.requires), small.SEED)

    def begun(self, **changes: Any) -> tuple[Variants, Inquiry]:
        """Its only variant begun, nobody asked; `changes` replace fields of its plan."""
        plan, inquiry = self.plan.changed(**changes), Inquiry()
        return Variants(World(plan, Views(plan)), inquiry), inquiry

    def released(self) -> bytes:
        """The file of its models, after a run."""
        return small.run(self.plan, self.placement).read_bytes()
