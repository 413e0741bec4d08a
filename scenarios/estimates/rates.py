"""Calibration of cost estimates: the fixed cost of a trial and the cost per party, from a few samples.

A sample runs one trial with few of its parties in this process, and measures seconds, bytes and memory of each side.
"""

from __future__ import annotations

import gc
import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from aggregator.collectors.collectors import Answers
from federation.contract.errors import FederationError
from federation.engines.inline import CLIENT_APP, MeasuredGrid
from scenarios.runs.progress import Costs, silent
from scenarios.runs.trial import INDIVIDUAL_SAMPLE, World
from scenarios.settings.protocol_options import INDIVIDUAL, POOLED

_FIRST = 32  # parties of the first samples
_LEAP = 64  # times as many parties as in the sample before, at most
_GROWN, _CHANCE = 1.3, 0.02  # times its first value, and seconds, by which a release must grow to be said to do so
_SERVING = 0.7  # of the time, for samples without parties on their own, where these are scored
_LIGHT = 0.2  # of the time: what all releases may take in each sample; of heavier ones one or two are made
_SECOND = 0.6  # seconds for the second sample, whatever is left: nothing can be told from one
_ONE = 1, 1  # epsilon and draw
_HEAVY = "gathering", "release", "scoring"
_SECONDS = (*_HEAVY, "answering")
_GROWING = (*_SECONDS, "sent", "held", "asked", "messages")


@dataclass(frozen=True)
class Line:
    """What k parties cost: `fixed`, and `each` of them; that lies between `least` and `most`.

    Examples:
        >>> Line(1.0, 0.1, 0.05, 0.2).at(10)
        (1.5, 2.0, 3.0)
    """

    fixed: float
    each: float
    least: float
    most: float

    def at(self, parties: float) -> tuple[float, float, float]:
        """Low, likely and high for so many."""
        return (
            self.fixed + self.least * parties,
            self.fixed + self.each * parties,
            self.fixed + self.most * parties,
        )

    def times(self, factor: float) -> Line:
        """All of it so many times."""
        return Line(self.fixed * factor, self.each * factor, self.least * factor, self.most * factor)


@dataclass(frozen=True)
class Rates:
    """What a world costs by its number of parties: processor seconds of this machine, bytes and MiB.

    `answering` is the parties' side, `gathering` what the aggregator does while it asks. `alone` are the seconds that
    scoring parties on their own adds to answering. `once` are those of the first world only, `crowding` seconds by the
    clock for one of the processor while this was found. `asked` are bytes of one node's questions, in `messages`;
    `sent` bytes of all answers, `held` those that the aggregator keeps. `peaks` is this process's peak memory after
    each phase, `served` the parties of each sample, `missing` the variants that these could not carry. They are `rough`
    where one or two releases stand for all.
    """

    answering: Line
    gathering: Line
    release: Line
    scoring: Line
    sent: Line
    held: Line
    alone: float
    once: float
    crowding: float
    asked: int
    messages: int
    peaks: dict[str, float]
    served: tuple[int, ...]
    missing: tuple[str, ...]
    rough: bool = False


def calibrated(world: World, per_node: int, seconds: float) -> Rates:
    """Run the world with ever more of its parties, for about so many seconds of this process's time.

    Where its releases take long, one stands for all, and two more samples tell what grows with epsilons and with draws.
    Takes two samples at least, the first of which loads what any run has to load, but one of all parties where that
    takes longer than all should. Raises `FederationError`s where none can be taken.
    """
    whole = world.split.cut.parties
    asked = any(one.kind == INDIVIDUAL for one in world.variants)
    until = time.process_time() + seconds
    first = _possible(world, min(_FIRST, whole), per_node, asked)
    every = len(world.scenario.privacy.epsilon), world.scenario.trials.noise
    heavy = (first.gathering + first.release + first.scoring) * math.prod(every) > _LIGHT * seconds
    made = _ONE if heavy else every
    samples = [first]
    if first.processor <= seconds or whole > first.parties:
        samples = [sampled(world, first.parties, per_node, 1, individual=False, releases=made)]
    grown = _growth(world, samples[0], per_node, every, until) if heavy else dict.fromkeys(_GROWING, 1.0)
    share = _SERVING if asked else 1.0
    while size := _next(samples, min(whole, 2 * per_node), until - time.process_time() - (1 - share) * seconds):
        samples.append(sampled(world, size, per_node, len(samples) + 1, individual=False, releases=made))
    answering = _line(samples, "answering")
    alone, latest = 0.0, samples[-1]
    if asked:
        alone, latest = _alone(world, first, answering, per_node, until, len(samples) + 1)
    taken = [first, *samples]
    pooled = any(one.kind == POOLED for one in world.variants)
    gathers = _grows(samples, "gathering") or _far(samples)
    return Rates(
        answering=answering.times(grown["answering"]),
        gathering=_line(samples, "gathering", gathers).times(grown["gathering"]),
        release=_line(samples, "release", _grows(samples, "release")).times(grown["release"]),
        scoring=(_pooled(samples, whole) if pooled else _line(samples, "scoring", False)).times(grown["scoring"]),
        sent=_line(samples, "sent").times(grown["sent"]),
        held=_line(samples, "held").times(grown["held"]),
        alone=alone,
        once=max(0.0, first.processor - samples[0].processor - (_beyond(first, answering) if asked else 0.0)),
        crowding=sum(one.wall for one in taken) / sum(one.processor for one in taken),
        asked=round(first.asked * grown["asked"]),
        messages=round(first.messages * grown["messages"]),
        peaks=latest.peaks,
        served=tuple(one.parties for one in samples),
        missing=first.missing,
        rough=any(grown[name] > 1.0 for name in _SECONDS),
    )


def _possible(world: World, parties: int, per_node: int, asked: bool) -> Sample:
    """The smallest sample that can be taken: of few parties too many may drop out, or too few share a noise."""
    whole = world.split.cut.parties
    while True:
        try:
            return sampled(world, parties, per_node, 0, individual=asked, releases=_ONE)
        except FederationError:
            if parties >= min(whole, 8 * _FIRST):
                raise
        parties = min(2 * parties, whole)


def _growth(world: World, one: Sample, per_node: int, every: tuple[int, int], until: float) -> dict[str, float]:
    """How many times as much all epsilons and draws take as one of each: by two of each, where there are so many.

    Without time for these everything that is heavy is taken to grow with both.
    """
    found = dict.fromkeys(_GROWING, 1.0)
    for axis, (turn, releases) in enumerate(((2, (2, 1)), (3, (1, 2)))):
        if every[axis] == 1:
            continue
        two = None
        if until - time.process_time() > one.processor:
            two = sampled(world, one.parties, per_node, 100 * turn, individual=False, releases=releases)
        for name in _GROWING:
            before = max(float(getattr(one, name)), 1e-9)
            gain = before * (name in _HEAVY) if two is None else float(getattr(two, name)) - before
            chance = name in _SECONDS and gain < _CHANCE
            found[name] *= 1.0 + (0.0 if chance else min(1.0, max(0.0, gain / before))) * (every[axis] - 1)
    return found


def _next(samples: Sequence[Sample], most: int, left: float) -> int:
    """Parties of the next sample, as many as there is time for; 0 where that is too few more to tell anything."""
    last = samples[-1]
    left = max(left, _SECOND) if len(samples) == 1 else left
    each = (last.answering if len(samples) == 1 else last.answering - samples[0].answering) / last.parties
    affordable = (left - (last.processor - last.answering)) / max(each, 1e-9)
    size = int(min(most, affordable, _LEAP * last.parties))
    return size if size >= 2 * last.parties or (size == most > last.parties) else 0


def _slope(one: Sample, other: Sample, name: str) -> float:
    return max(0.0, float(getattr(other, name) - getattr(one, name)) / (other.parties - one.parties))


def _grows(samples: Sequence[Sample], name: str) -> bool:
    """Whether more than chance lies between the least and the most parties."""
    least, most = (float(getattr(one, name)) for one in (samples[0], samples[-1]))
    return most > max(_GROWN * least, least + _CHANCE)


def _far(samples: Sequence[Sample]) -> bool:
    """Whether the samples lie so far apart that chance hardly makes a slope."""
    return samples[-1].parties >= 16 * samples[0].parties


def _line(samples: Sequence[Sample], name: str, grows: bool = True) -> Line:
    """Through the first and the last sample; the slopes between others tell how sure that is."""
    first, last = samples[0], samples[-1]
    value, average = float(getattr(first, name)), float(getattr(last, name)) / last.parties
    if first is last:  # what is fixed cannot be told from what is not
        return Line(0.0, average, average, average) if grows else Line(value, 0.0, 0.0, 0.0)
    slopes = [_slope(one, other, name) for one, other in pairwise(samples)]
    each = _slope(first, last, name) if grows else 0.0
    most = max(each, *slopes) if grows else 0.0
    return Line(max(0.0, value - each * first.parties), each, min(each, *slopes), most)


def _alone(
    world: World, first: Sample, answering: Line, per_node: int, until: float, turn: int
) -> tuple[float, Sample]:
    """Seconds that scoring parties on their own adds, and the sample, beside the first, that says so.

    Most of what few parties take is the test rows', which are read and mapped once.
    """
    scored = min(INDIVIDUAL_SAMPLE, world.split.cut.parties)
    few = _beyond(first, answering)
    affordable = int((until - time.process_time()) * first.parties / max(few, 1e-9))
    size = min(scored, per_node, max(affordable, 4 * first.parties))
    if size <= first.parties:
        return few * scored / first.parties, first
    more = sampled(world, size, per_node, turn, individual=True, releases=_ONE)
    many = _beyond(more, answering)
    return many + max(0.0, many - few) / (size - first.parties) * (scored - size), more


def _pooled(samples: Sequence[Sample], whole: int) -> Line:
    """Scoring with all rows pooled, whose training is slower than its rows at first, and faster later on.

    High is a straight line, low what the most parties took; the geometric mean is likely.
    """
    straight, reached = _line(samples, "scoring"), samples[-1].scoring
    _, far, _ = straight.at(whole)
    least, likely = ((value - straight.fixed) / whole for value in (min(reached, far), math.sqrt(reached * far)))
    return Line(straight.fixed, likely, min(least, likely), straight.each) if far > reached else straight


def _beyond(sample: Sample, answering: Line) -> float:
    """Seconds that scoring parties on their own has added to a sample."""
    return max(0.0, sample.answering - answering.at(sample.parties)[1])


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
    with tempfile.TemporaryDirectory() as folder, silent():  # no remark on so few parties is one on the run
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
