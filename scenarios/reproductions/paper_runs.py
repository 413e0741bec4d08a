"""The runs behind a paper's items: each scenario in a directory of its own, which a later run goes on with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from federation.contract.errors import InputError, writing
from federation.contract.files import alone
from scenarios.data.catalogue import digest
from scenarios.reproductions.paper import Paper, Part
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
    """Of a run's directory, the same whatever the number of splits."""
    plain = {key: value for key, value in scenario.to_plain().items() if key != "trials"}
    plain["noise"] = scenario.trials.noise
    short = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:8]
    return f"{scenario.name}-{part.setting.lower().replace(' ', '-')}-{short}"
