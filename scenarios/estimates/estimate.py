"""What a whole scenario will cost: its worlds' costs added up, after a calibration of a few seconds."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aggregator.contract.protocol import Place
from federation.engines.nodes import cohort_size, processors
from scenarios.estimates.costs import PHASES, Site, Span, WorldCost, beside, cost, total
from scenarios.estimates.rates import Rates, calibrated
from scenarios.runs.world import World, worlds
from scenarios.settings.protocol_options import place
from scenarios.settings.schema import Scenario
from scenarios.settings.sweep import variants

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
    """Of a scenario whose data took `data` seconds to load and cut. Raises `FederationError`s.

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
    if any(place(one.kind, one.options) is Place.SHARES for one in variants(scenario)):
        told.append("of secure sums the answers alone are counted, and federation privacy secure-sum tells the rest")
    busy = max(one.crowding for one in rates)
    if busy > _BUSY:
        told.append(f"this machine is busy, a second of work took {busy:.1f}: low figures are for an idle one")
    return "; ".join([*told, "the report by rule"])
