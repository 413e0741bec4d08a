"""From what one world's parties cost to what it costs on an engine: processes side by side, messages, memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scenarios.estimates.rates import Rates
from scenarios.runs.world import INDIVIDUAL_SAMPLE

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
    """Of all phases."""
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
    """Of a world with so many parties, whose data takes `data` seconds in each process."""
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
