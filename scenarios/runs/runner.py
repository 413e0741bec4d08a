"""Runs of a scenario: every trial through the two apps, to artefacts for people.

`preview` describes a run from public numbers and the shape of the data; it trains and writes nothing.
"""

import logging
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from aggregator.contract.ledger import Budget
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import FederationError
from federation.contract.guarantee import Guarantee
from federation.engines.inline import open_grid
from federation.engines.nodes import SimulationGrid
from scenarios.data.catalogue import citations
from scenarios.data.frames import as_file
from scenarios.data.tables import Table, describe
from scenarios.reports.assessment import Known, verdicts
from scenarios.reports.assessment_texts import constant_answer, told
from scenarios.runs.directory import RunDirectory, replaced
from scenarios.runs.finished_run import Run
from scenarios.runs.progress import Costs, Progress
from scenarios.runs.trial import World, over_time, releases_about, worlds
from scenarios.scores.results import NOBODY, Row, write_results
from scenarios.settings.guarantees import to_yaml
from scenarios.settings.protocol_options import BASELINES, promise
from scenarios.settings.rules import noise_free, recorded, require_two_classes
from scenarios.settings.schema import Scenario, resolve
from scenarios.settings.sweep import Variant, releases, swept_columns, variants
from scenarios.simulated.targets import require_floors, wants_targets

_log = logging.getLogger(__name__)
_PACKAGES = ("multiparty-federation", "flwr", "ray", "numpy", "scipy", "scikit-learn")
_WORLDS_NAMED = 3  # in the message about a variant that failed in several


class IncompleteRunError(FederationError):
    """Variants failed in some worlds; `run` has the results of all else."""

    def __init__(self, run: Run) -> None:
        self.run = run
        worlds: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for failed in run.failed_variants:
            worlds[failed["variant"], failed["cause"]].append(failed["world"])
        lines = (f"variant '{name}' failed at {_enumerated(at)}: {cause}" for (name, cause), at in worlds.items())
        super().__init__("\n".join([*lines, f"all other results are in {run.directory}; --resume tries these again"]))


def check_budget(scenario: Scenario) -> None:
    """Refuse a scenario whose budget cannot pay for a release, over all periods where their number is known.

    That is before any data is read. Raises `BudgetExceededError`.
    """
    budget = scenario.privacy.budget
    if budget is None:
        return
    choice = None if scenario.chosen is None else scenario.chosen.charge
    limit = Budget.of(budget.model_dump(), releases_about(scenario.trials), choice)
    assert limit is not None, "there is a budget"
    for variant in variants(scenario):
        for epsilon in scenario.privacy.epsilon:
            promised = promise(variant.kind, variant.options, epsilon, PublicNumbers(scenario.privacy.delta))
            if promised is not None and isinstance(promised.spends, Guarantee):
                limit.gate_promise(promised.spends, f"release '{variant.name}'")


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
    data: Any = None,
) -> Run:
    """Run a scenario: a file, a library name, a dict of the same shape, or a resolved `Scenario`.

    `data`: a data frame in place of `data.source`, of pandas, Polars, DuckDB, Arrow or any library that has
    `__arrow_c_stream__` or `__dataframe__`; as if it had been written to a Parquet file, of which nothing stays behind.
    `overrides` are KEY=VALUE texts as for `--set`. Writes the artefacts to `out` (default runs/NAME) and keeps
    finished worlds whatever happens later; `resume` goes on with them, and tries variants that failed again. `grid` is
    one that is open already and stays so; None opens the one of `engine.kind`. Raises `FederationError`s: `InputError`
    for a scenario or data that cannot be used, `BudgetExceededError`, `QuorumError`, and at the end
    `IncompleteRunError`, which holds the run, where variants failed.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> few = ["parties.count=50", "privacy.epsilon=30", "trials.splits=1", "trials.noise=1"]
        >>> with TemporaryDirectory() as folder:
        ...     done = run("quickstart", out=folder, overrides=few)
        ...     print((done.directory / "report.html").exists(), {row["variant"] for row in done.rows} >= {"soft_vote"})
        True True

        With rows of one's own, which `data.label` names the labels of:

        >>> from sklearn.datasets import load_breast_cancer
        >>> import pyarrow
        >>> found = load_breast_cancer()
        >>> columns = dict(zip(found.feature_names, found.data.T)) | {"found": found.target_names[found.target]}
        >>> with TemporaryDirectory() as folder:
        ...     known = {"label": "found"}, {"count": 40}, {"epsilon": 10}, {"splits": 1, "noise": 1}
        ...     scenario = dict(zip(("data", "parties", "privacy", "trials"), known))
        ...     done = run(scenario, out=folder, data=pyarrow.table(columns))
        ...     print([verdict.finding for verdict in done.verdicts])
        ['cannot be told']
    """
    plain: Any = scenario.to_plain() if isinstance(scenario, Scenario) and (overrides or data is not None) else scenario
    if data is not None:
        with as_file(data) as (source, folder):
            return run(
                plain,
                out=out,
                overrides=[*overrides, f"data.source={source}"],
                data_dir=folder,
                resume=resume,
                keep_models=keep_models,
                progress=progress,
                grid=grid,
            )
    resolved = plain if isinstance(plain, Scenario) else resolve(plain, overrides)
    check_budget(resolved)
    watcher, costs = progress or Progress(), Costs()
    versions = ", ".join(f"{name} {number}" for name, number in _versions().items())
    _log.info("scenario %s, seed %d, engine %s; %s", resolved.name, resolved.seed, resolved.engine.kind, versions)
    with costs.phase("data"):  # data that cannot be used must stop us before anything is written
        todo = worlds(resolved, None if data_dir is None else str(data_dir))
        table = usable_data(todo)
    watcher.note(describe(table))
    directory = RunDirectory.open(None if out is None else Path(out), resolved.name, resume)
    directory.require_same_run([world.name for world in todo])
    directory.require_unchanged([world.name for world in todo])
    if resume and directory.fresh:
        watcher.note(f"nothing to resume in {directory.path}: the run starts")
    started = datetime.now(UTC)
    unfinished = [world for world in todo if not _complete(world, directory, keep_models)]
    watcher.begin(len(todo), len(todo) - len(unfinished))
    watcher.expect([world.spec.parties or 1 for world in unfinished])  # where there is no number it is not swept
    status = "failed"
    with directory.writing():
        try:
            replaced(directory.path / "scenario.yaml", to_yaml(resolved))
            if unfinished:
                _run_worlds(resolved, unfinished, directory, keep_models, watcher, costs, grid)
            status = "done"
        except KeyboardInterrupt:
            status = "interrupted"
            raise
        finally:
            if directory.fresh and not any(directory.finished(world.name) for world in todo):
                directory.discard()  # nothing to keep, and nothing in the way of the next attempt
            else:
                finished = _write(resolved, todo, directory, status, started, costs, table.classes)
    _log.info("all is in %s", finished.directory)
    if finished.failed_variants:
        raise IncompleteRunError(finished)
    return finished


def usable_data(todo: Sequence[World]) -> Table:
    """The table of the last setting, once all that a run will cut out of its data is known to be there.

    Floors that protocols declare are true of it, too, and it has as many classes as they are for. Without target sets
    one split stands for all. Raises `InputError`.
    """
    for world in todo:
        wanted = wants_targets(world.scenario)
        if wanted or world.spec.split == 0:
            pieces = world.split
        require_two_classes(world.scenario.protocols, pieces.table)
        if wanted:
            world.targets()
            require_floors(world.scenario, pieces, world.label)
    return pieces.table


def _complete(world: World, directory: RunDirectory, keep_models: bool) -> bool:
    """Whether the rows of all of a world's variants and all models that should stay are there."""
    kept = _kept(world.variants, keep_models)
    models = [directory.model(variant.name, world.place, world.spec.split) for variant in kept]
    whole = directory.finished(world.name) and not directory.summary(world.name)["failed_variants"]
    return whole and all(path.exists() for path in models)


def _run_worlds(
    scenario: Scenario,
    unfinished: Sequence[World],
    directory: RunDirectory,
    keep_models: bool,
    watcher: Progress,
    costs: Costs,
    grid: SimulationGrid | None,
) -> None:
    with ExitStack() as stack:
        if grid is None:
            engine = scenario.engine
            with costs.phase("start"):
                grid = open_grid(
                    engine.kind, workers=engine.workers, address=engine.ray.address, on_reply=watcher.answers
                )
            stack.callback(grid.close)
        for world in unfinished:
            watcher.world(world.label)
            with directory.scratch(world.name) as work:
                # What cannot begin in the first world is a mistake to be told at once; later there is more to gain.
                rows, summary = world.run(grid, costs, work, directory.has_results)
                models = {
                    work / f"{variant.name}.npz": directory.model(variant.name, world.place, world.spec.split)
                    for variant in _kept(world.variants, keep_models)
                    if variant.name not in summary["failed_variants"]
                }
                directory.finish(world.name, rows, swept_columns(scenario), summary, work, models)
            watcher.world_done()


def _kept(candidates: Sequence[Variant], everything: bool) -> list[Variant]:
    """Whose models stay: the default variant (the first one when nothing is left at its default), or all."""
    released = [variant for variant in candidates if variant.kind not in BASELINES]
    return released if everything else ([variant for variant in released if variant.default] or released[:1])


def _write(
    scenario: Scenario,
    todo: Sequence[World],
    directory: RunDirectory,
    status: str,
    started: datetime,
    costs: Costs,
    classes: Sequence[str],
) -> Run:
    """All artefacts of the worlds finished so far, and what they say."""
    done = [(world, directory.summary(world.name)) for world in todo if directory.finished(world.name)]
    rows: list[Row] = []
    failures: Counter[str] = Counter()
    failed_variants = []
    for world, summary in done:
        swept = {key: str(value) for key, value in world.swept.items()}
        rows += [{**row, **swept} for row in directory.rows(world.name)]
        failures.update(summary["failures"])
        failed_variants += [
            {"variant": name, "world": world.label, "cause": cause}
            for name, cause in summary["failed_variants"].items()
        ]
    found = verdicts(rows, _known(scenario, done))
    sayings = told(found, constant_answer(rows, classes))
    exposed = {row["variant"] for row in rows if row["unit"] == NOBODY}
    unprotected = [variant for variant in variants(scenario) if variant.name in exposed]
    write_results(directory.path / "results.csv", rows, swept_columns(scenario))
    ledgers = [
        {"swept": world.swept, "split": 0, **summary["ledger"]} for world, summary in done if world.spec.split == 0
    ]
    directory.write_json("ledger.json", {"worlds": ledgers, **over_time(ledgers, scenario, todo[0].periods)})
    disclosures = [
        {"swept": world.swept, **summary["disclosure"]}
        for world, summary in done
        if world.spec.split == 0 and "disclosure" in summary  # runs begun by an earlier release have none
    ]
    directory.write_json(
        "run.json",
        {
            "status": "failed" if failed_variants and status == "done" else status,
            "started": started.isoformat(timespec="seconds"),
            "verdict": [one.to_dict() for one in found],
            "sayings": [{"finding": finding, "sentence": sentence} for finding, sentence in sayings],
            "worlds": {"finished": len(done), "all": len(todo)},
            "origins": citations(scenario.data.source),
            "seed": scenario.seed,
            "engine": scenario.engine.kind,
            "non_private": any(variant.kind not in BASELINES for variant in unprotected),
            "non_private_variants": [variant.name for variant in unprotected],
            "remarks": list(dict.fromkeys(line for _, summary in done for line in summary.get("remarks", ()))),
            "disclosures": disclosures,
            "defaults": recorded(protocol.kind for protocol in scenario.protocols),
            "note": "a diagnostic of a simulation: nothing in this file is covered by a guarantee",
            "versions": _versions(),
            "seconds": {phase: round(seconds, 3) for phase, seconds in costs.seconds.items()},
            "peak_memory_mebibytes": {phase: round(peak, 1) for phase, peak in costs.peak_mebibytes.items()},
            "failures": dict(failures),
            "failed_variants": failed_variants,
        },
    )
    if rows:
        with costs.phase("report"):
            _draw(scenario, directory, rows)
    return Run(directory.path, rows, costs, dict(failures), failed_variants, found, sayings)


def _versions() -> dict[str, str]:
    return {"python": sys.version.split()[0], **{name: version(name) for name in _PACKAGES}}


def _known(scenario: Scenario, done: Sequence[tuple[World, Mapping[str, Any]]]) -> Known:
    """What verdicts must know beside the rows, of finished worlds with their summaries."""
    stands_for = noise_free(scenario.protocols)
    places = [", ".join(f"{key} = {value}" for key, value in one.swept.items()) for one, _ in done]
    parties = {place: one.scenario.parties.count for place, (one, _) in zip(places, done, strict=True)}
    needed = {
        (place, one["variant"], one["epsilon"]): one["parties_needed"]
        for place, (_, summary) in zip(places, done, strict=True)
        for one in summary.get("outlooks", ())
    }
    adjacencies = {
        release["variant"]: release["guarantee"]["adjacency"]
        for _, summary in done
        for release in summary["ledger"]["releases"]
        if "adjacency" in release["guarantee"]
    }
    counts = {place: count for place, count in parties.items() if isinstance(count, int)}
    return Known(None if stands_for is None else stands_for[0], counts, adjacencies, needed)


def _enumerated(worlds: Sequence[str]) -> str:
    """The first worlds by name, the others by number."""
    rest = f" and {len(worlds) - _WORLDS_NAMED} more" if len(worlds) > _WORLDS_NAMED else ""
    return "; ".join(worlds[:_WORLDS_NAMED]) + rest


def _draw(scenario: Scenario, directory: RunDirectory, rows: list[Row]) -> None:
    from scenarios.reports.figures import draw
    from scenarios.reports.guarantee_page import write_guarantee
    from scenarios.reports.report import write_report

    draw(rows, directory.path / "figures", scenario.name)
    write_guarantee(directory.path, rows)
    write_report([directory.path], directory.path / "report.html", {directory.path: rows})


def preview(scenario: Scenario, data_dir: Path | None) -> dict[str, Any]:
    """Worlds, parties, rows and releases of a scenario as plain JSON values.

    Raises `InputError` for data that cannot be used and `BudgetExceededError` like a run.

    Examples:
        >>> from scenarios.settings.schema import resolve
        >>> found = preview(resolve("quickstart"), None)
        >>> found["worlds"], found["releases"], found["points"][0]["parties"]
        (5, 1000, 200)
    """
    check_budget(scenario)
    todo = worlds(scenario, None if data_dir is None else str(data_dir))
    usable_data(todo)
    point = todo[0].scenario
    listed = variants(point)
    return {
        "scenario": scenario.name,
        "worlds": len(todo),
        "points": [_point(world) for world in todo if world.spec.split == 0],
        "variants": [
            {"name": variant.name, "protocol": variant.kind, "default": variant.default, "options": variant.options}
            for variant in listed
        ],
        "epsilon": list(point.privacy.epsilon),
        "delta": point.privacy.delta,
        "releases": len(todo) * sum(releases(variant, point) for variant in listed),
        "engine": point.engine.kind,
    }


def _point(world: World) -> dict[str, Any]:
    """One setting of the sweep, with the unlabelled sets whose class ratios would be estimated, if any."""
    table, cut = world.split.table, world.split.cut
    found = {
        "swept": world.swept,
        "data": describe(table),
        "parties": cut.parties,
        "bags_per_party": cut.bags_per_party,
        "smallest_bag": int(cut.bag_sizes.min()),
        "largest_bag": cut.largest_bag,
        "private_rows": len(cut.order),
        "auxiliary_rows": len(world.split.public.rows),
        "test_rows": len(cut.test),
        "features": world.feature_map().dimension,
    }
    if not wants_targets(world.scenario):
        return found
    sets, declared = world.targets(), world.scenario.data.targets
    varied = (declared and declared.vary) or table.classes[0]
    return {**found, "target_sets": len(sets), "target_rows": len(sets[0].indices), "target_shares_of": varied}
