"""Estimated cost of a scenario: seconds, memory and messages of all its trials, after a calibration of a few seconds.

The estimate is printed as ranges of seconds, minutes or hours, and as bytes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from federation.engines.nodes import cohort_size, processors
from scenarios.estimates.rates import Rates, calibrated
from scenarios.runs.trial import INDIVIDUAL_SAMPLE, World, worlds
from scenarios.settings.rules import summed
from scenarios.settings.schema import Scenario

_SECONDS = 2.5  # of this process's time, for all calibrations
_BUSY = 1.3  # seconds by the clock for one of work, from which that is said
_MOST_CALIBRATED = 6  # settings; the others are taken for the nearest of these


@dataclass(frozen=True)
class Estimate:
    """What a run will cost.

    `seconds` by phase; `largest` names the setting whose world takes longest, `largest_seconds` of one split; `peak`
    is the aggregator's memory by phase in MiB, `worker` that of each worker; `answers` and `questions` are bytes of all
    worlds, `bytes_per_party` those that one party of the largest sends; `crowding` are seconds by the clock for one of
    work while this was found; `found` says how, and `missing` which variants it leaves out.
    """

    seconds: Mapping[str, Span]
    largest: str
    largest_seconds: Span
    bytes_per_party: int
    answers: float
    questions: float
    peak: Mapping[str, float]
    worker: float
    crowding: float
    found: str
    missing: tuple[str, ...]

    @property
    def all(self) -> Span:
        """Seconds of the run."""
        return total(self.seconds)

    def to_dict(self) -> dict[str, Any]:
        """JSON values: seconds as [low, likely, high], bytes, MiB."""
        spans = {"all": self.all, **self.seconds}
        found = {
            "seconds": {name: _three(span) for name, span in spans.items()},
            "bytes_per_party": self.bytes_per_party,
            "bytes": {"answers": round(self.answers), "questions": round(self.questions)},
            "mebibytes": {**{name: round(one) for name, one in self.peak.items()}, "each_worker": round(self.worker)},
            "largest": self.largest,
            "largest_seconds": _three(self.largest_seconds),
            "found": self.found,
        }
        return {**found, "left_out": list(self.missing)} if self.missing else found


def _three(span: Span) -> list[float]:
    return [float(f"{one:.3g}") for one in (span.low, span.likely, span.high)]


def estimate(scenario: Scenario, data_dir: Path | None, data: float) -> Estimate:
    """Estimate the cost of a scenario whose data took `data` seconds to load and cut. Raises `FederationError`s.

    Settings that differ in their number of parties only are calibrated once. Nothing is written.
    """
    settings = [one for one in worlds(scenario, None if data_dir is None else str(data_dir)) if one.spec.split == 0]
    site, kinds = _site(scenario), dict[str, list[World]]()
    for world in settings:
        kinds.setdefault(_kind(world), []).append(world)
    every = -(-len(kinds) // _MOST_CALIBRATED)
    costs, rates, cuts = list[tuple[World, WorldCost]](), list[Rates](), 0.0
    for number, alike in enumerate(kinds.values()):
        if number % every == 0:
            widest = max(alike, key=lambda one: one.spec.parties or 0)
            rates.append(calibrated(widest, _per_node(widest, site), _SECONDS * every / len(kinds)))
        for world in alike:
            started = time.perf_counter()
            parties, per_node = world.split.cut.parties, _per_node(world, site)
            cuts += time.perf_counter() - started
            costs.append((world, cost(rates[-1], parties, per_node, data, site)))
    splits = scenario.trials.splits
    once = beside(site, data, cuts * splits if len(settings) * splits > 1 else 0.0, rates[0])
    seconds = {name: once.get(name, Span(0, 0, 0)) for name in PHASES}
    for _, one in costs:
        for name, span in one.seconds.items():
            seconds[name] += span.times(splits, splits, splits)
    largest, biggest = max(costs, key=lambda one: one[1].whole.likely)
    phases = biggest.aggregator
    return Estimate(
        seconds=seconds,
        largest=", ".join(f"{key}={value}" for key, value in largest.swept.items()) or "the only setting",
        largest_seconds=biggest.whole,
        bytes_per_party=round(biggest.bytes_per_party),
        answers=splits * sum(one.answers for _, one in costs),
        questions=splits * sum(one.questions for _, one in costs),
        peak={name: max(one.aggregator[name] for _, one in costs) for name in phases},
        worker=max(one.worker for _, one in costs),
        crowding=max(one.crowding for one in rates),
        found=_found(rates, site, len(kinds), scenario),
        missing=tuple(dict.fromkeys(name for one in rates for name in one.missing)),
    )


def _site(scenario: Scenario) -> Site:
    engine, here = scenario.engine, processors()
    workers = 1 if engine.kind == "inline" else engine.workers or here
    return Site(engine.kind, workers, workers + 1 if engine.ray.address else here)


def _kind(world: World) -> str:
    """Equal for settings whose parties cost the same: they differ in the number of parties, who hold as many rows."""
    plain = world.scenario.model_dump(mode="json")
    if world.spec.rows is not None:
        del plain["parties"]["count"]
    return json.dumps(plain, sort_keys=True)


def _per_node(world: World, site: Site) -> int:
    """Parties behind a node, as a run has them."""
    wanted = world.scenario.engine.parties_per_node
    return cohort_size(world.split.cut.parties, site.workers, wanted, world.most_per_node)


def _found(rates: Sequence[Rates], site: Site, kinds: int, scenario: Scenario) -> str:
    """How all of it was found, and what is taken on trust."""
    served = max((one.served for one in rates), key=lambda sizes: sizes[-1])
    sizes = " and ".join(f"{size}" for size in (served if len(served) < 3 else (served[0], served[-1])))
    told = [f"{sizes} parties were served in this process, and what each cost is taken of all"]
    if kinds > len(rates):
        told.append(f"{len(rates)} of {kinds} kinds of settings were tried, the others are taken to cost as these")
    if site.kind != "inline":
        many = f"{site.workers} workers on {site.processors} processors"
        where = " of a cluster that was not asked; give engine.workers" if scenario.engine.ray.address else ""
        told.append(f"{many}{where}; starting and messages by rule")
    if summed(scenario.protocols):
        told.append("of secure sums the answers alone are counted, and federation privacy secure-sum tells the rest")
    busy = max(one.crowding for one in rates)
    if busy > _BUSY:
        told.append(f"this machine is busy, a second of work took {busy:.1f}: low figures are for an idle one")
    return "; ".join([*told, "the report by rule"])


_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def seconds(value: float) -> str:
    """A time with two digits at most.

    Examples:
        >>> [seconds(value) for value in (0.04, 3.14, 95, 5000, 200_000)]
        ['0.04 s', '3.1 s', '95 s', '1.4 h', '2.3 days']
    """
    if value < 2 * _MINUTE:
        return f"{value:.2g} s" if value < 10 else f"{value:.0f} s"
    unit, name = next((unit, name) for unit, name in ((_DAY, "days"), (_HOUR, "h"), (_MINUTE, "min")) if value >= unit)
    return f"{value / unit:.1f} {name}" if value < 10 * unit else f"{value / unit:.0f} {name}"


def between(span: Span) -> str:
    """A range, with what is likely.

    Examples:
        >>> between(Span(90, 100, 300)), between(Span(0, 0, 0))
        ('100 s (90 s to 5.0 min)', '0 s')
    """
    low, likely, high = map(seconds, (span.low, span.likely, span.high))
    return likely if low == likely == high else f"{likely} ({low} to {high})"


def size(value: float) -> str:
    """Bytes in the unit that suits.

    Examples:
        >>> size(258), size(2.58e9)
        ('258 bytes', '2.6 GB')
    """
    power = 0
    while value >= 1000 and power < len(_UNITS) - 1:
        value, power = value / 1000, power + 1
    return f"{value:.0f} {_UNITS[power]}" if value >= 10 or not power else f"{value:.1f} {_UNITS[power]}"


def spoken(found: Estimate) -> dict[str, Any]:
    """The same as `Estimate.to_dict`, for people."""
    told: dict[str, Any] = {
        "seconds": {"all": between(found.all), **{name: between(span) for name, span in found.seconds.items()}},
        "bytes": {
            "each party sends": size(found.bytes_per_party),
            "all answers": size(found.answers),
            "all questions": size(found.questions),
        },
        "memory": {name: f"{peak:.0f} MiB" for name, peak in found.peak.items()},
        "largest": f"{found.largest}: {between(found.largest_seconds)} a split",
        "found": found.found,
    }
    if found.worker:
        told["memory"]["each worker"] = f"{found.worker:.0f} MiB"
    return {**told, "left out": list(found.missing)} if found.missing else told


PHASES = ("start", "data", "collect", "release", "scoring", "report")
_SURE = 0.8, 1.0, 1.25  # low, likely and high of all that is measured
_ROUGH = 0.4, 1.0, 1.6  # where one or two releases stand for all
_CROWD = 1.2  # high of the crowding that was seen
_MESSAGE = {"inline": 0.0002, "ray": 0.001, "flower": 0.03}  # the aggregator's seconds for each message
_BYTE = 1.0e-9  # and for each byte that comes from another process
_START = {"inline": 0.0, "ray": 3.0, "flower": 8.0}  # processor seconds until workers serve
_REPORT = 3.5  # processor seconds for figures and the report
_REPORT_MEMORY = 60.0  # MiB
_ENGINE_MEMORY = 60.0  # MiB that Ray takes in the aggregator's process
_NODE = 4e-3  # MiB for each message under way


@dataclass(frozen=True)
class Span:
    """Low, likely and high."""

    low: float
    likely: float
    high: float

    def __add__(self, other: Span) -> Span:
        return Span(self.low + other.low, self.likely + other.likely, self.high + other.high)

    def times(self, low: float, likely: float, high: float) -> Span:
        """Each multiplied by its own."""
        return Span(self.low * low, self.likely * likely, self.high * high)


def total(seconds: Mapping[str, Span]) -> Span:
    """Return the sum over all phases."""
    return sum(seconds.values(), start=Span(0, 0, 0))


@dataclass(frozen=True)
class Site:
    """Who runs a world: the kind of engine, its workers, and the processors that these and the aggregator share."""

    kind: str
    workers: int
    processors: int


@dataclass(frozen=True)
class WorldCost:
    """What one world costs: seconds by phase, bytes of a party's answers, of all, and of questions; memory in MiB."""

    seconds: Mapping[str, Span]
    bytes_per_party: float
    answers: float
    questions: float
    aggregator: Mapping[str, float]
    worker: float

    @property
    def whole(self) -> Span:
        """Seconds of all phases."""
        return total(self.seconds)


def cost(rates: Rates, parties: int, per_node: int, data: float, site: Site) -> WorldCost:
    """Return the cost of a trial with so many parties, whose data takes `data` seconds in each process."""
    nodes = -(-parties // per_node)
    messages, sent = nodes * rates.messages, rates.sent.at(parties)[1]
    away = site.kind != "inline"
    crowd = (min(1.0, rates.crowding), rates.crowding, rates.crowding * _CROWD)
    askings = nodes if site.kind == "flower" else min(nodes, site.workers)  # a process of Ray is told once
    overhead = messages * _MESSAGE[site.kind] + (sent + askings * rates.asked) * _BYTE * away
    answering, gathering = rates.answering.at(parties), rates.gathering.at(parties)
    collect = []
    for served, gathered in zip(answering, gathering, strict=True):
        work, own = served + rates.alone, gathered + overhead
        if not away:
            collect.append(work + own)
            continue
        # One node's parties are served by one process; those that are scored on their own are the first.
        first = served * min(1.0, per_node / parties) + rates.alone * min(1.0, per_node / INDIVIDUAL_SAMPLE)
        collect.append(data + max(work / site.workers, first, own, (work + own) / site.processors))
    measured = {
        "collect": Span(*collect),
        "release": Span(*rates.release.at(parties)),
        "scoring": Span(*rates.scoring.at(parties)),
    }
    seconds = {name: found.times(*(_ROUGH if rates.rough else _SURE)).times(*crowd) for name, found in measured.items()}
    grown = rates.held.each * parties / 2**20 + messages * _NODE + _ENGINE_MEMORY * away
    late = {name: rates.peaks[name] + grown for name in ("collect", "release", "scoring")}
    aggregator = {"data": rates.peaks["data"], **late, "report": late["scoring"] + _REPORT_MEMORY}
    worker = rates.peaks["collect"] if away else 0.0
    return WorldCost(seconds, sent / parties, sent, float(askings * rates.asked), aggregator, worker)


def beside(site: Site, data: float, cuts: float, rates: Rates) -> dict[str, Span]:
    """Seconds of what a run does once: start, data (of which `cuts` for later worlds), the report."""
    crowd = (min(1.0, rates.crowding), rates.crowding, rates.crowding * _CROWD)
    once = {"start": _START[site.kind] + rates.once, "report": _REPORT}
    found = {name: Span(each * 0.5, each, each * 2).times(*crowd) for name, each in once.items()}
    return {**found, "data": Span(data + cuts, data + cuts, data + cuts).times(*_SURE)}
