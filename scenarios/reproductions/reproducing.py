"""Measures an item: by its scenarios, by its function, or both; what was lacking is written down."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

import federation
from federation.contract.errors import InputError
from scenarios.reproductions.kept import Kept, Record, keep
from scenarios.reproductions.paper import EXACT, Item, Observation
from scenarios.reproductions.paper_runs import PaperRuns
from scenarios.reproductions.reading import observed


def reproduce(runs: PaperRuns, item: Item) -> Kept:
    """Measure an item, keep its values in the runs' folder, and return them.

    Parts whose data is not there are replaced, or left out, and the record says so. Raises `FederationError`.
    """
    found: list[Observation] = []
    seeds: dict[str, int] = {}
    data: dict[str, str] = {}
    missing: dict[str, str] = {}
    for declared in item.parts:
        part, lacking = runs.available(declared)
        if part is None or (runs.quick and part.quick is None):
            missing[declared.setting] = lacking or "left out of a quick run"
            continue
        found += observed(runs.rows(part), item, part)
        seeds[part.setting] = runs.scenario(part).seed
        if said := ". ".join(filter(None, [part.substitute, lacking])):
            data[part.setting] = said
    if item.compute is not None:
        found += item.compute(runs.quick, runs.data_dir)
    if not found:
        why = "; ".join(f"{setting}: {text}" for setting, text in missing.items())
        raise InputError(f"nothing of {runs.paper.name} {item.name} could be measured: {why}")
    version = federation.__version__
    kept = Kept(found, Record(_command(runs, item), version, runs.quick, seeds, _splits(found), data, missing))
    keep(runs.folder, runs.paper, item, kept)
    return kept


def _splits(found: Sequence[Observation]) -> Mapping[str, int]:
    """How many there are of each setting that was not computed exactly."""
    known: dict[str, set[int]] = {}
    for one in found:
        if one.split != EXACT:
            known.setdefault(one.setting, set()).add(one.split)
    return {setting: len(splits) for setting, splits in known.items()}


def _command(runs: PaperRuns, item: Item) -> str:
    options = ["--quick"] if runs.quick else []
    options += [] if runs.splits is None else ["--splits", str(runs.splits)]
    return shlex.join(["federation", "reproduce", runs.paper.name, "--only", item.name, *options])
