"""The same in pfl-research: one user per party, each training scikit-learn's logistic regression and voting.

A baseline of `benchmarks.engines`, beside `benchmarks.plain_flower`: what a user of pfl writes, in its simulation
backend with its numpy operations, which sums the users' counts of votes.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import AlgorithmHyperParams, FederatedAlgorithm
from pfl.common_types import Population
from pfl.context import CentralContext
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.internal.ops import numpy_ops
from pfl.internal.ops.selector import set_framework_module
from pfl.metrics import Metrics
from pfl.model.base import Model
from pfl.stats import MappedVectorStatistics

from benchmarks.plain_flower import fit_and_vote


class Votes(FederatedAlgorithm):  # type: ignore[misc]
    """One round in which every user trains and votes on the public rows (N, d)."""

    def __init__(self, public: np.ndarray, classes: int) -> None:
        super().__init__()
        self._public, self._classes = public, classes

    def simulate_one_user(self, model: Any, user_dataset: Any, central_context: Any) -> tuple[Any, Any]:
        """The user's votes, one-hot (N, C)."""
        rows, labels = user_dataset.raw_data
        votes = fit_and_vote(rows, labels, self._public)
        return MappedVectorStatistics({"votes": np.eye(self._classes)[votes]}), Metrics()

    def get_next_central_contexts(self, model: Any, iteration: int, *parameters: Any) -> tuple[Any, Any, Any]:
        """Not asked for: the round is run by itself."""
        return None, model, Metrics()

    def process_aggregated_statistics(self, context: Any, metrics: Any, model: Any, statistics: Any) -> tuple[Any, Any]:
        """Not asked for either."""
        return model, Metrics()


class Nothing(Model):  # type: ignore[misc]
    """The model that all users start from: there is none."""

    def apply_model_update(self, statistics: Any) -> tuple[Any, Any]:
        """Itself."""
        return self, Metrics()


def ask(folder: Path, classes: int) -> float:
    """Seconds of one round of the users whose rows are in the folder (see `benchmarks.plain_flower`)."""
    set_framework_module(numpy_ops)
    rows, labels, public = (np.load(folder / f"{name}.npy") for name in ("rows", "labels", "public"))
    users = iter(range(len(rows)))
    data = FederatedDataset(lambda user: Dataset((rows[user], labels[user]), user_id=str(user)), lambda: next(users))
    backend = SimulatedBackend(training_data=data, val_data=data)
    context = CentralContext(0, False, len(rows), Population.TRAIN, AlgorithmHyperParams(), None, seed=1)
    started = time.perf_counter()
    found, _ = backend.gather_results(Nothing(), Votes(public, classes), central_context=context)
    seconds = time.perf_counter() - started
    assert found["votes"].sum() == len(rows) * len(public)
    return seconds
