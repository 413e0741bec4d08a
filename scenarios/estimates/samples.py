"""One world served with a few of its parties in this process: seconds, bytes and memory of each side of it."""

from __future__ import annotations

import gc
import logging
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from aggregator.collectors.collectors import Answers
from federation.engines.inline import CLIENT_APP, MeasuredGrid
from scenarios.runs.costs import Costs
from scenarios.runs.world import World
from scenarios.settings.protocol_options import INDIVIDUAL


@dataclass(frozen=True)
class Sample:
    """What a world of `parties` parties behind `nodes` nodes took: processor seconds, bytes and MiB.

    `answering` is the parties' side of collecting, `gathering` the aggregator's. `sent` are the bytes of all answers,
    `asked` those of one node's questions in `messages` messages, `held` those of the arrays that answers are collected
    in. `wall` and `processor` are the seconds of all of it, `peaks` the process's peak memory after each phase so far,
    `missing` the variants that so few parties cannot carry.
    """

    parties: int
    nodes: int
    messages: int
    answering: float
    gathering: float
    release: float
    scoring: float
    sent: int
    asked: int
    held: int
    wall: float
    processor: float
    peaks: dict[str, float]
    missing: tuple[str, ...]


def sampled(
    world: World, parties: int, per_node: int, turn: int, *, individual: bool, releases: tuple[int, int] | None = None
) -> Sample:
    """Run the world with so many parties, up to `per_node` of them behind a node; nothing stays of it.

    `releases` are numbers of epsilons and of draws of each, None all of the scenario's.

    They hold as many rows as in the whole world, others in every `turn`, as what a process has trained it knows, and
    does not train again. `individual` says whether the baseline of parties on their own is scored where
    the scenario asks for it. Raises `FederationError`s, as where so few parties make no quorum.
    """
    few = _with(world, parties, per_node, turn, individual, releases)
    before, found = _collectors(), {}
    looking, asked = 0.0, 0

    def look(answered: int, sent: int) -> None:
        """Find where the answers of a round are collected, once all its questions are sent."""
        nonlocal looking, asked
        if sent > asked:
            started, asked = time.process_time(), sent
            found.update(_collectors())
            looking += time.process_time() - started

    costs, grid = _ProcessorCosts(), MeasuredGrid(CLIENT_APP, look)
    wall, processor = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as folder, _silent():
        _, summary = few.run(grid, costs, Path(folder), sparing=True)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor - looking
    apps, seconds = processor - costs.seconds["data"] - costs.seconds["scoring"], summary["seconds"]
    release = apps * seconds["release"] / (seconds["collect"] + seconds["release"])
    nodes = -(-parties // min(per_node, parties))
    return Sample(
        parties=parties,
        nodes=nodes,
        messages=grid.messages // nodes,
        answering=grid.answering,
        gathering=max(0.0, apps - release - grid.answering),
        release=release,
        scoring=costs.seconds["scoring"],
        sent=grid.sent,
        asked=grid.asked,
        held=sum(_held(one) for key, one in found.items() if key not in before),
        wall=wall,
        processor=processor,
        peaks=dict(costs.peak_mebibytes),
        missing=tuple(summary["failed_variants"]),
    )


def _with(
    world: World, parties: int, per_node: int, turn: int, individual: bool, releases: tuple[int, int] | None = None
) -> World:
    """The same world of fewer parties, who hold as many rows each."""
    point, spec, cut = world.scenario, world.spec, world.split.cut
    rows = spec.rows
    if rows is None and "by" not in spec.partition:
        bags = spec.bags if isinstance(spec.bags, int) else 1
        rows = max(1, len(cut.order) // cut.parties // bags) * bags
    protocols = [one for one in point.protocols if individual or one.kind != INDIVIDUAL]
    engine = point.engine.model_copy(update={"parties_per_node": min(per_node, parties), "timeout": None})
    fewer = point.model_copy(update={"protocols": protocols, "engine": engine})
    if releases is not None:
        epsilons, draws = releases
        budgets = {"privacy": point.privacy.model_copy(update={"epsilon": point.privacy.epsilon[:epsilons]})}
        fewer = fewer.model_copy(update={**budgets, "trials": point.trials.model_copy(update={"noise": draws})})
    return replace(world, scenario=fewer, spec=replace(spec, parties=parties, rows=rows, seed=spec.seed + turn))


class _ProcessorCosts(Costs):
    """Costs whose phases are told in seconds of this process."""

    clock = staticmethod(time.process_time)


def _collectors() -> dict[int, Answers]:
    """All that there are, by id; whoever holds them keeps ids from being used again."""
    return {id(one): one for one in gc.get_objects() if isinstance(one, Answers)}


def _held(collector: Answers) -> int:
    """Bytes of a collector's arrays."""
    return sum(map(_bytes, (value for name, value in vars(collector).items() if name != "question")))


def _bytes(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, dict):
        return sum(map(_bytes, value.values()))
    return sum(map(_bytes, value)) if isinstance(value, list | tuple) else 0


@contextmanager
def _silent() -> Iterator[None]:
    """No remark on so few parties is one on the run."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
