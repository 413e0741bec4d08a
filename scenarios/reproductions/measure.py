"""Measurement of a paper's items: by their scenarios, by a function, or both; what was missing is recorded.

Each scenario runs in a directory of its own, which a later run continues.
"""

import hashlib
import json
import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from pathlib import Path
from statistics import fmean

import federation
from federation.contract.errors import FederationError, InputError, writing
from federation.contract.files import alone
from scenarios.data.catalogue import digest
from scenarios.reports.summary import Spread, VariantSummary, summarise
from scenarios.reproductions.paper import EXACT, Item, Kept, Observation, Paper, Part, Pick, Record, keep
from scenarios.runs.progress import Progress
from scenarios.runs.runner import run
from scenarios.scores.results import Row
from scenarios.settings.loader import library
from scenarios.settings.schema import Scenario, resolve

_LOCK = "reproduce.lock"


@dataclass(frozen=True)
class PaperRuns:
    """Runs of a paper's parts in FOLDER/PAPER/runs; parts of the same scenario share one, which is read once.

    `splits` is another number of them than the scenarios name. `progress` makes one for each run, from its name.
    """

    paper: Paper
    folder: Path
    quick: bool = False
    splits: int | None = None
    data_dir: Path | None = None
    progress: Callable[[str], Progress] = lambda name: Progress()
    _rows: dict[Path, list[Row]] = field(default_factory=dict)

    def alone(self) -> AbstractContextManager[None]:
        """Nobody else measures this paper in this folder in the meantime.

        Raises `InputError` where somebody does, and where nothing can be written.
        """
        runs = self._runs
        with writing(f"to {runs}", "name another --out"):
            runs.mkdir(parents=True, exist_ok=True)
            (runs / _LOCK).touch()
        busy = f"another process measures {self.paper.name} in {self.folder}; wait for it, or name another --out"
        return alone(runs / _LOCK, busy)

    @property
    def _runs(self) -> Path:
        return self.folder / self.paper.name / "runs"

    def rows(self, part: Part) -> list[Row]:
        """What the run of a part has measured; finished worlds are not repeated. Raises `FederationError`."""
        scenario = self.scenario(part)
        out = self._runs / _name(part, scenario)
        if out not in self._rows:
            watcher = self.progress(f"{self.paper.name}, {part.setting}")
            done = run(scenario, out=out, data_dir=self.data_dir, resume=out.exists(), progress=watcher)
            self._rows[out] = done.rows
        return self._rows[out]

    def scenario(self, part: Part) -> Scenario:
        """The scenario of a part, as it is run here."""
        return scenario_of(self.paper, part, quick=self.quick, splits=self.splits)

    def available(self, part: Part) -> tuple[Part | None, str]:
        """The part; where its data is not there what is measured in its place, or None, with the reason."""
        lacking = self.lacking(scenario_of(self.paper, part))
        if not lacking:
            return part, ""
        return (part.missing, f"measured on other data, because {lacking}") if part.missing else (None, lacking)

    def lacking(self, scenario: Scenario) -> str:
        """Which data of a scenario is not there; empty where all is."""
        for source in sources(scenario):
            try:
                digest(source, self.data_dir)
            except InputError:  # its words name a folder of this machine, and pages are for everybody
                return f"there is no file of '{source}' (federation data {source} says where the original is)"
        return ""


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


def _name(part: Part, scenario: Scenario) -> str:
    """Return the name of a run's directory, the same whatever the number of splits."""
    plain = {key: value for key, value in scenario.to_plain().items() if key != "trials"}
    plain["noise"] = scenario.trials.noise
    short = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:8]
    return f"{scenario.name}-{part.setting.lower().replace(' ', '-')}-{short}"


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


def observed(rows: Sequence[Row], item: Item, part: Part) -> Iterator[Observation]:
    """What the run of a part has measured of the item's series; series that it has no variant of are left out.

    Raises `InputError` where a pick fits several values, or none at this epsilon or place.
    """
    summaries: dict[str, list[VariantSummary]] = {}
    for series in item.series:
        for role, pick in series.picks().items():
            for x in item.at:
                for split, value in _values(rows, summaries, pick, x).items():
                    yield Observation(part.setting, series.name, role, x, split, value)


def _values(rows: Sequence[Row], summaries: dict[str, list[VariantSummary]], pick: Pick, x: str) -> dict[int, float]:
    """Return the values of one pick at one place, by split."""
    metric = pick.metric.format(x=x)
    if metric not in summaries:
        summaries[metric] = list(summarise(rows, metric))
    spread = _spread(summaries[metric], pick, x)
    found = {} if spread is None else {split: fmean(values) for split, values in spread.by_split.items()}
    if pick.beside is None or not found:
        return found
    beside = _values(rows, summaries, pick.beside, x)
    return {split: pick.of(value, beside[split]) for split, value in found.items() if split in beside}


def _spread(summaries: Sequence[VariantSummary], pick: Pick, x: str) -> Spread | None:
    at = partial(str.format, x=x)
    variant = pick.variant.format(x=x)
    where = {key: at(value) for key, value in pick.where.items()}
    named = [one for one in summaries if one.variant == variant and where.items() <= one.swept.items()]
    if len(named) > 1:
        settings = "; ".join(one.place for one in named)
        raise InputError(f"{variant} was measured in several settings; say in `where` which: {settings}")
    if not named:
        return None
    [one] = named
    if pick.epsilon:
        return one.by_epsilon.get(_epsilon(at(pick.epsilon)))
    if len(one.by_epsilon) > 1:
        known = ", ".join(f"{epsilon:g}" for epsilon in one.by_epsilon)
        raise InputError(f"{variant} was measured at several epsilons, {known}; say in `epsilon` which")
    return next(iter(one.by_epsilon.values()))


def _epsilon(text: str) -> float:
    """Return a number, or one over a number, which may be 0."""
    number = float(text.removeprefix("1/"))
    if not text.startswith("1/"):
        return number
    return 1 / number if number else math.inf
