"""Measures an item: by its scenarios, by its function, or both; what was lacking is written down."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

import federation
from federation.contract.errors import FederationError, InputError
from scenarios.reproductions.kept import Kept, Record, keep
from scenarios.reproductions.paper import EXACT, Item, Observation
from scenarios.reproductions.paper_runs import PaperRuns
from scenarios.reproductions.reading import observed


class IncompleteItemError(FederationError):
    """An item, or parts of it, could not be measured; `kept` is what else was, None where nothing was."""

    def __init__(self, said: str, kept: Kept | None, exit_code: int) -> None:
        super().__init__(said)
        self.kept, self.exit_code = kept, exit_code


def reproduce(runs: PaperRuns, item: Item) -> Kept:
    """Measure an item, keep its values in the runs' folder, and return them.

    Parts whose data is not there are replaced, or left out, and the record says so. A part that fails costs no other.
    Raises `IncompleteItemError` in the end where one has failed or nothing was measured, and `InputError` where values
    cannot be kept.
    """
    found: list[Observation] = []
    seeds: dict[str, int] = {}
    data: dict[str, str] = {}
    missing: dict[str, str] = {}
    failed: dict[str, FederationError] = {}
    for declared in item.parts:
        part, lacking = runs.available(declared)
        if part is None or (runs.quick and part.quick is None):
            missing[declared.setting] = lacking or "left out of a quick run"
            continue
        try:
            found += list(observed(runs.rows(part), item, part))
        except FederationError as error:
            failed[part.setting] = error
            continue
        seeds[part.setting] = runs.scenario(part).seed
        if said := ". ".join(filter(None, [part.substitute, lacking])):
            data[part.setting] = said
    if item.compute is not None:
        try:
            for one in item.compute(runs.quick, runs.data_dir):
                found.append(one)
        except FederationError as error:
            failed["the rest"] = error
    missing |= dict.fromkeys(failed, "it failed")  # why may name a folder of this machine; pages are for everybody
    command, version = _command(runs, item), federation.__version__
    kept = Kept(found, Record(command, version, runs.quick, seeds, _splits(found), data, missing))
    if found:
        keep(runs.folder, runs.paper, item, kept)
    if failed or not found:
        raise _incomplete(f"{runs.paper.name} {item.name}", kept, failed)
    return kept


def _incomplete(name: str, kept: Kept, failed: Mapping[str, FederationError]) -> IncompleteItemError:
    """What failed of an item, or was lacking where there is nothing of it."""
    code = next((error.exit_code for error in failed.values()), InputError.exit_code)
    why = {**kept.record.missing, **{setting: str(error) for setting, error in failed.items()}}
    if not kept.observations:
        said = "; ".join(f"{setting}: {text}" for setting, text in why.items())
        return IncompleteItemError(f"nothing of {name} could be measured: {said}", None, code)
    said = "\n".join(f"{name}, {setting}: {error}" for setting, error in failed.items())
    return IncompleteItemError(said, kept, code)


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
