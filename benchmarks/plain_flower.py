"""What a user of Flower would write first: one node per party, each training scikit-learn's logistic regression.

The baseline of `benchmarks.engines`. The folder named by the environment variable holds the parties' rows (K, n, d),
labels (K, n) and the public rows (N, d), already behind the feature map.
"""

from __future__ import annotations

import os
import time
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid

from federation.engines.nodes import ROLL_CALL, present

FOLDER = "BENCHMARK_FOLDER"
app = ClientApp()


def fit_and_vote(rows: np.ndarray, labels: np.ndarray, public: np.ndarray) -> np.ndarray:
    """The classes (N,) that one party's own classifier gives the public rows."""
    from sklearn.linear_model import LogisticRegression

    if (labels == labels[0]).all():
        return np.full(len(public), labels[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(C=1 / (1e-4 * len(rows)), fit_intercept=False, tol=1e-6, max_iter=1000)
        return np.asarray(model.fit(rows, labels).predict(public))


@lru_cache
def _load(name: str) -> np.ndarray:
    return np.asarray(np.load(Path(os.environ[FOLDER]) / f"{name}.npy", mmap_mode="r"))


def vote(message: Message, context: Context) -> Message:
    """Train on this node's rows and vote."""
    party = int(context.node_config["partition-id"])
    votes = fit_and_vote(_load("rows")[party], _load("labels")[party], _load("public"))
    return Message(RecordDict({"votes": ArrayRecord({"votes": Array(votes.astype(np.uint8))})}), reply_to=message)


app.query(ROLL_CALL)(present)
app.query("votes")(vote)


def ask(grid: Grid) -> float:
    """Seconds of one round: every node votes, and the votes are counted."""
    started = time.perf_counter()
    nodes = list(grid.get_node_ids())
    messages = [grid.create_message(RecordDict(), "query.votes", node, "") for node in nodes]
    votes = np.stack([reply.content["votes"]["votes"].numpy() for reply in grid.send_and_receive(messages)])
    assert len(votes) == len(nodes)
    for label in range(6):
        (votes == label).sum(axis=0)
    return time.perf_counter() - started
