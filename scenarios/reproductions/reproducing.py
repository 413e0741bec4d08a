"""Runs what is behind an item: its scenarios, each in a directory that a later run goes on with, or its function."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path

import federation
from federation.contract.errors import InputError
from scenarios.data.catalogue import digest
from scenarios.reproductions.kept import Kept, Record, keep
from scenarios.reproductions.paper import EXACT, Item, Observation, Paper, Part
from scenarios.reproductions.reading import observed
from scenarios.runs.progress import Progress
from scenarios.runs.runner import run
from scenarios.settings.loader import library
from scenarios.settings.schema import Scenario, resolve


def reproduce(
    paper: Paper,
    item: Item,
    folder: Path,
    *,
    quick: bool = False,
    splits: int | None = None,
    data_dir: Path | None = None,
    progress: Callable[[str], Progress] | None = None,
) -> Kept:
    """Measure an item, keep its values below the `folder`, and return them.

    Its runs lie in FOLDER/PAPER/runs: finished worlds of a scenario are not repeated. `splits` is another number of
    them than the scenarios name. `progress` makes one for each part, from its name. Parts whose data is not there are
    replaced, or left out, and the record says so. Raises `FederationError`.
    """
    found: list[Observation] = []
    seeds: dict[str, int] = {}
    data: dict[str, str] = {}
    missing: dict[str, str] = {}
    for declared in item.parts:
        if quick and declared.quick is None:
            missing[declared.setting] = "left out of a quick run"
            continue
        part, lacking = available(paper, declared, data_dir)
        if part is None:
            missing[declared.setting] = lacking
            continue
        scenario = scenario_of(paper, part, quick=quick, splits=splits)
        watcher = Progress() if progress is None else progress(f"{item.name}, {part.setting}")
        out = folder / paper.name / "runs" / _directory(part, scenario)
        done = run(scenario, out=out, data_dir=data_dir, resume=out.exists(), progress=watcher)
        found += observed(done.rows, item, part)
        seeds[part.setting] = scenario.seed
        said = ". ".join(filter(None, [part.substitute, lacking]))
        if said:
            data[part.setting] = said
    if item.compute is not None:
        found += item.compute(quick, data_dir)
    if not found:
        raise InputError(
            f"nothing of {paper.name} {item.name} could be measured: "
            + "; ".join(f"{setting}: {why}" for setting, why in missing.items())
        )
    record = Record(
        _command(paper, item, quick, splits), federation.__version__, quick, seeds, _splits(found), data, missing
    )
    keep(folder, paper, item, Kept(found, record))
    return Kept(found, record)


def available(paper: Paper, part: Part, data_dir: Path | None) -> tuple[Part | None, str]:
    """The part, or what is measured in its place, with the reason, where its data is not there; None without any."""
    try:
        for source in sources(scenario_of(paper, part)):
            digest(source, data_dir)
    except InputError as error:
        lacking = str(error)
        return (part.missing, f"measured on other data, because {lacking}") if part.missing else (None, lacking)
    return part, ""


def scenario_of(paper: Paper, part: Part, *, quick: bool = False, splits: int | None = None) -> Scenario:
    """The scenario of a part: a file of the paper's folder, or one of the library."""
    overrides = [*part.overrides, *((part.quick or ()) if quick else ())]
    overrides += [] if splits is None else [f"trials.splits={splits}"]
    own = files("scenarios") / "papers" / paper.name / part.scenario
    source = part.scenario if part.scenario in library() else str(own)
    return resolve(source, overrides)


def sources(scenario: Scenario) -> list[str]:
    """The data sets of a scenario."""
    named = scenario.data.source
    return [named] if isinstance(named, str) else list(named)


def _directory(part: Part, scenario: Scenario) -> str:
    """Of a part's run: parts of the same scenario share it, whatever their numbers of splits."""
    plain = {key: value for key, value in scenario.to_plain().items() if key != "trials"}
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:8]
    return f"{scenario.name}-{part.setting.lower().replace(' ', '-')}-{digest}"


def _splits(found: list[Observation]) -> Mapping[str, int]:
    """How many there are of each setting that was not computed exactly."""
    known: dict[str, set[int]] = {}
    for one in (each for each in found if each.split != EXACT):
        known.setdefault(one.setting, set()).add(one.split)
    return {setting: len(splits) for setting, splits in known.items()}


def _command(paper: Paper, item: Item, quick: bool, splits: int | None) -> str:
    options = ["--quick"] if quick else []
    options += [] if splits is None else ["--splits", str(splits)]
    return shlex.join(["federation", "reproduce", paper.name, "--only", item.name, *options])
