"""Runs a scenario: every world through the two apps, to artefacts that a person can read."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from aggregator.contract.ledger import Budget
from aggregator.world.public_numbers import PublicNumbers
from federation.contract.errors import FederationError
from federation.contract.guarantee import Guarantee
from federation.grids.launch import open_grid
from federation.grids.simulation import SimulationGrid
from scenarios.data.catalogue import digest
from scenarios.data.tables import Table, describe
from scenarios.runs.costs import Costs
from scenarios.runs.directory import RunDirectory
from scenarios.runs.progress import Progress, Silent
from scenarios.runs.world import World
from scenarios.scores.results import NOBODY, Row, write_results
from scenarios.settings.explained import to_yaml
from scenarios.settings.floors import require_floors
from scenarios.settings.label_rules import require_two_classes
from scenarios.settings.protocol_options import BASELINES, promise
from scenarios.settings.schema import Scenario, resolve
from scenarios.settings.sweep import Variant, WorldSetting, cell_id, expand, swept_columns, variants, world_key
from scenarios.simulated.simulation import SplitSpec, split
from scenarios.simulated.targets import target_sets, wants_targets

_PACKAGES = ("multiparty-federation", "flwr", "ray", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Run:
    """A finished run: its directory, its measured values, what it cost, and failed parties of all worlds by cause.

    `failed_variants` says which variants failed in which worlds, and why: `variant`, `world` and `cause` of each.
    """

    directory: Path
    rows: list[Row]
    costs: Costs
    failures: dict[str, int]
    failed_variants: list[dict[str, str]]

    @property
    def results(self) -> Any:
        """The rows as a pandas DataFrame when pandas is installed, as a list of dicts otherwise."""
        try:
            import pandas
        except ImportError:
            return self.rows
        return pandas.DataFrame(self.rows)


class IncompleteRunError(FederationError):
    """Variants failed in some worlds; `run` has the results of all else."""

    def __init__(self, run: Run) -> None:
        self.run = run
        worlds: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for failed in run.failed_variants:
            worlds[failed["variant"], failed["cause"]].append(failed["world"])
        lines = (f"variant '{name}' failed at {_enumerated(at)}: {cause}" for (name, cause), at in worlds.items())
        super().__init__("\n".join([*lines, f"all other results are in {run.directory}; --resume tries these again"]))


@dataclass(frozen=True)
class Cell:
    """One world to run: a sweep point and a split; `name` for its files, `key` for its noise."""

    name: str
    key: str
    setting: WorldSetting
    split: int

    @property
    def label(self) -> str:
        """Readable: the swept values and the split."""
        return ", ".join([*(f"{key}={value}" for key, value in self.setting.swept.items()), f"split {self.split}"])

    @property
    def place(self) -> str:
        """A folder name for the sweep point, empty without a sweep."""
        return "_".join(f"{key}={value}" for key, value in self.setting.swept.items()).replace("/", "-")


def cells(scenario: Scenario, data_dir: str | None) -> list[Cell]:
    """All worlds of a scenario in the order of results.csv. Raises `InputError` when the data is missing."""
    found = []
    for setting in expand(scenario):
        contents = digest(setting.scenario.data.source, data_dir)
        for number in range(setting.scenario.trials.splits):
            name, key = cell_id(setting, number, contents), world_key(setting, number, contents)
            found.append(Cell(name, key, setting, number))
    return found


def check_budget(scenario: Scenario) -> None:
    """Refuse a scenario whose budget cannot pay for a release, before any data is read.

    Raises `BudgetExceededError`.
    """
    budget = scenario.privacy.budget
    if budget is None:
        return
    for variant in variants(scenario):
        for epsilon in scenario.privacy.epsilon:
            promised = promise(variant.kind, variant.options, epsilon, PublicNumbers(scenario.privacy.delta))
            if promised is not None and isinstance(promised.spends, Guarantee):
                Budget(budget.epsilon, budget.delta).gate([promised.spends], f"release '{variant.name}'")


def run(
    scenario: str | Path | Mapping[str, Any] | Scenario,
    *,
    out: str | Path | None = None,
    overrides: Sequence[str] = (),
    data_dir: str | Path | None = None,
    resume: bool = False,
    keep_models: bool = False,
    progress: Progress | None = None,
    grid: SimulationGrid | None = None,
) -> Run:
    """Run a scenario: a file, a library name, a dict of the same shape, or a resolved `Scenario`.

    `overrides` are KEY=VALUE texts as for `--set`. Writes the artefacts to `out` (default runs/NAME) and keeps
    finished worlds whatever happens later; `resume` goes on with them, and tries variants that failed again. `grid` is
    one that is open already and stays so; None opens the one of `engine.kind`. Raises `FederationError`s: `InputError`
    for a scenario or data that cannot be used, `BudgetExceededError`, `QuorumError`, and at the end
    `IncompleteRunError`, which holds the run, where variants failed.
    """
    resolved = scenario if isinstance(scenario, Scenario) else resolve(scenario, overrides)
    check_budget(resolved)
    watcher = progress or Silent()
    folder = None if data_dir is None else str(data_dir)
    costs = Costs()
    with costs.phase("data"):  # data that cannot be used must stop us before anything is written
        todo = cells(resolved, folder)
        table = usable_data(todo, folder)
    watcher.data(describe(table))
    directory = RunDirectory.open(None if out is None else Path(out), resolved.name, resume)
    directory.require_same_run([cell.name for cell in todo])
    (directory.path / "scenario.yaml").write_text(to_yaml(resolved))
    started = datetime.now(UTC)
    unfinished = [cell for cell in todo if not _complete(cell, directory, keep_models)]
    watcher.begin(len(todo), len(todo) - len(unfinished))
    status = "failed"
    try:
        _run_cells(resolved, unfinished, directory, folder, keep_models, watcher, costs, grid)
        status = "done"
    except KeyboardInterrupt:
        status = "interrupted"
        raise
    finally:
        if directory.fresh and not any(directory.finished(cell.name) for cell in todo):
            directory.discard()  # nothing to keep, and nothing in the way of the next attempt
        else:
            finished = _write(resolved, todo, directory, status, started, costs)
    if finished.failed_variants:
        raise IncompleteRunError(finished)
    return finished


def usable_data(todo: Sequence[Cell], data_dir: str | None) -> Table:
    """The table of the last setting, once all that a run will cut out of its data is known to be there.

    Floors that protocols declare are true of it, too, and it has as many classes as they are for. Without target sets
    one split stands for all. Raises `InputError`.
    """
    for cell in todo:
        point = cell.setting.scenario
        wanted = wants_targets(point)
        if wanted or cell.split == 0:
            world = split(SplitSpec.of(point, cell.split, data_dir))
        require_two_classes(point, world.table)
        if wanted:
            target_sets(world.table, world.cut.test, point.data.targets, seed=point.seed, split=cell.split)
            require_floors(point, world, cell.label)
    return world.table


def _complete(cell: Cell, directory: RunDirectory, keep_models: bool) -> bool:
    """Whether the rows of all of a world's variants and all models that should stay are there."""
    kept = _kept(variants(cell.setting.scenario), keep_models)
    models = (directory.model(variant.name, cell.place, cell.split) for variant in kept)
    return (
        directory.finished(cell.name)
        and not directory.failed_variants(cell.name)
        and all(path.exists() for path in models)
    )


def _run_cells(
    scenario: Scenario,
    unfinished: Sequence[Cell],
    directory: RunDirectory,
    data_dir: str | None,
    keep_models: bool,
    watcher: Progress,
    costs: Costs,
    grid: SimulationGrid | None,
) -> None:
    if not unfinished:
        return
    with ExitStack() as stack:
        if grid is None:
            engine = scenario.engine
            with costs.phase("start"):
                grid = open_grid(
                    engine.kind, workers=engine.workers, address=engine.ray.address, on_reply=watcher.answers
                )
            stack.callback(grid.close)
        for cell in unfinished:
            watcher.world(cell.label)
            world = world_of(cell, directory.scratch(cell.name), data_dir)
            # What cannot begin in the first world is a mistake to be told at once; afterwards there is more to gain.
            sparing = directory.has_results
            rows, summary = world.run(grid, costs, sparing)
            for variant in _kept(world.variants, keep_models):
                if variant.name in summary["failed_variants"]:
                    continue
                directory.keep(world.directory / f"{variant.name}.npz", variant.name, cell.place, cell.split)
            directory.finish(cell.name, rows, swept_columns(scenario), summary)
            watcher.world_done()


def world_of(cell: Cell, work: Path, data_dir: str | None) -> World:
    """The world of a cell; its files go to `work`."""
    point = cell.setting.scenario
    return World(cell.key, point, variants(point), SplitSpec.of(point, cell.split, data_dir), work)


def _kept(candidates: Sequence[Variant], everything: bool) -> list[Variant]:
    """Whose models stay: the default variant (the first one when nothing is left at its default), or all."""
    released = [variant for variant in candidates if variant.kind not in BASELINES]
    return released if everything else ([variant for variant in released if variant.default] or released[:1])


def _write(
    scenario: Scenario,
    todo: Sequence[Cell],
    directory: RunDirectory,
    status: str,
    started: datetime,
    costs: Costs,
) -> Run:
    """All artefacts of the worlds finished so far, and what they say."""
    done = [cell for cell in todo if directory.finished(cell.name)]
    swept = {cell.name: {key: str(value) for key, value in cell.setting.swept.items()} for cell in done}
    rows = [{**row, **swept[cell.name]} for cell in done for row in directory.rows(cell.name)]
    summaries = [directory.summary(cell.name) for cell in done]
    failures: Counter[str] = Counter()
    for summary in summaries:
        failures.update(summary["failures"])
    failed_variants = [
        {"variant": name, "world": cell.label, "cause": cause}
        for cell in done
        for name, cause in directory.failed_variants(cell.name).items()
    ]
    exposed = {row["variant"] for row in rows if row["unit"] == NOBODY}
    unprotected = [variant for variant in variants(scenario) if variant.name in exposed]
    write_results(directory.path / "results.csv", rows, swept_columns(scenario))
    worlds = [
        {"swept": cell.setting.swept, "split": cell.split, **summary["ledger"]}
        for cell, summary in zip(done, summaries, strict=True)
        if cell.split == 0
    ]
    directory.write_json("ledger.json", {"worlds": worlds})
    directory.write_json(
        "run.json",
        {
            "status": "failed" if failed_variants and status == "done" else status,
            "started": started.isoformat(timespec="seconds"),
            "worlds": {"finished": len(done), "all": len(todo)},
            "seed": scenario.seed,
            "engine": scenario.engine.kind,
            "non_private": any(variant.kind not in BASELINES for variant in unprotected),
            "non_private_variants": [variant.name for variant in unprotected],
            "note": "a diagnostic of a simulation: nothing in this file is covered by a guarantee",
            "versions": {"python": sys.version.split()[0], **{name: version(name) for name in _PACKAGES}},
            "seconds": {phase: round(seconds, 3) for phase, seconds in costs.seconds.items()},
            "peak_memory_mebibytes": {phase: round(peak, 1) for phase, peak in costs.peak_mebibytes.items()},
            "failures": dict(failures),
            "failed_variants": failed_variants,
        },
    )
    if rows:
        with costs.phase("report"):
            _draw(scenario, directory, rows)
    return Run(directory.path, rows, costs, dict(failures), failed_variants)


def _enumerated(worlds: Sequence[str], most: int = 3) -> str:
    """The first worlds by name, the others by number."""
    rest = f" and {len(worlds) - most} more" if len(worlds) > most else ""
    return "; ".join(worlds[:most]) + rest


def _draw(scenario: Scenario, directory: RunDirectory, rows: list[Row]) -> None:
    from scenarios.reports.figures import draw
    from scenarios.reports.report import write_report

    draw(rows, directory.path / "figures", scenario.name)
    write_report([directory.path], directory.path / "report.html", {directory.path: rows})
