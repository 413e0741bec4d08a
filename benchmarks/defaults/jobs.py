"""Jobs: one world each, through the product's own engine, for all its variants, epsilons and draws at once."""

from __future__ import annotations

import hashlib
import io
import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import closing, redirect_stderr
from dataclasses import dataclass, field
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from aggregator.contract.registry import model
from aggregator.releases.model_files import head
from benchmarks.defaults.records import DONE, Record, Store
from federation.contract.errors import FederationError
from federation.engines.inline import open_grid
from scenarios.data.catalogue import digest
from scenarios.runs.progress import Costs
from scenarios.runs.trial import World, worlds
from scenarios.scores.scoring import L1, MSE
from scenarios.settings.protocol_options import BASELINES
from scenarios.settings.schema import resolve
from scenarios.simulated.targets import wants_targets

DELTA = 1e-6
REFERENCES = ("constant", "pooled")
SETS_ERROR = "l1_of_sets"  # of class ratios, on the groups of a file of further rows
MEAN = "mean"  # of private labels, or their ratios, as an answer to everything: a reference without privacy
Place = tuple[str, str]  # variant and noise
Values = dict[tuple[str, str, float, str], list[float]]  # by variant, noise, epsilon and metric
_SECONDS_BETWEEN_LINES = 30.0


@dataclass(frozen=True)
class Variant:
    """One line of a table: a protocol with the options that make it, under each of these laws of noise.

    No law is named where the protocol's own choice is what is measured.
    """

    name: str
    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    noises: tuple[str, ...] = ("",)

    def protocols(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The law and the settings of each."""
        for noise in self.noises:
            yield noise, {"kind": self.kind, **self.options, **({"noise": noise} if noise else {})}


@dataclass(frozen=True)
class Job:
    """One split of one world: `labels` are the (variant, noise) of the scenario's protocols, in their order.

    `sets` is a file of further rows X, y and groups: unlabelled sets, on which released class ratios are scored, too.
    """

    part: str
    set: str
    world: str
    split: int
    labels: tuple[tuple[str, str], ...]
    scenario: Mapping[str, Any]
    sets: str = ""

    @cached_property
    def key(self) -> str:
        """Of all that the job runs and of the contents of its data, wherever that lies."""
        source = self.scenario["data"]["source"]
        data = {**self.scenario["data"], "source": digest(source) or source}
        whole = {**self.scenario, "data": data}
        plain = [self.part, self.set, self.world, self.split, self.labels, whole, self.sets and digest(self.sets)]
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]


def job(
    part: str,
    name: str,
    world: str,
    split: int,
    variants: Sequence[Variant],
    scenario: Mapping[str, Any],
    references: Sequence[str] = REFERENCES,
    sets: str = "",
) -> Job:
    """The scenario with the protocols of all variants and with baselines; `split` numbers its seed."""
    found = [(variant.name, *pair) for variant in variants for pair in variant.protocols()]
    labels = [(name, noise) for name, noise, _ in found] + [(name, "") for name in references]
    protocols = [protocol for *_, protocol in found] + [{"kind": name} for name in references]
    whole = {"name": "defaults", **scenario, "protocols": protocols, "baselines": False, "seed": split + 1}
    return Job(part, name, world, split, tuple(labels), whole, sets)


def measured(todo: Job) -> list[Record]:
    """Everything that the job measures, the processor seconds that it took last.

    Variants that fail are named and left out. Raises `FederationError` when nothing of it can run.
    """
    started = time.process_time()
    [world] = worlds(resolve(todo.scenario), None)
    base = (todo.part, todo.set, todo.world, todo.split, todo.key)
    labels = dict(zip((variant.name for variant in world.variants), todo.labels, strict=True))
    values: Values = {}
    with tempfile.TemporaryDirectory() as folder, closing(open_grid("inline")) as grid, threadpool_limits(1):
        with redirect_stderr(io.StringIO()):  # what a run says of its budget is in the tables
            rows, summary = world.run(grid, Costs(), Path(folder), sparing=True)
        failed = summary["failed_variants"]
        for name, epsilon, dimension in _dimensions(world, Path(folder), failed):
            values[(*labels[name], epsilon, "features")] = [dimension]
        if todo.sets:
            values |= _on_sets(world, Path(folder), todo, labels, failed)
    for name, cause in failed.items():
        print(f"\n{todo.set}, {todo.world}, {labels[name][0]}: failed, {cause}", file=sys.stderr)
    for row in rows:
        values.setdefault((*labels[row["variant"]], row["epsilon"], row["metric"]), []).append(row["value"])
    values |= _of_data(world)
    records = [Record(*base, *place, fmean(several)) for place, several in values.items()]
    return [*records, Record(*base, "job", "", np.inf, DONE, time.process_time() - started)]


def _released(world: World, folder: Path, failed: Collection[str]) -> Iterator[tuple[str, Any, list[float]]]:
    """Name, models and epsilons of each variant that did not fail."""
    for variant in world.variants:
        if variant.kind not in BASELINES and variant.name not in failed:
            path = folder / f"{variant.name}.npz"
            kind, aims = head(path)
            yield variant.name, model(kind).load(path), [float(aim) for aim in aims]


def _dimensions(world: World, folder: Path, failed: Collection[str]) -> Iterator[tuple[str, float, float]]:
    """Variant, epsilon and number of features behind the map of each release."""
    for name, models, epsilons in _released(world, folder, failed):
        for epsilon, mapped in zip(epsilons, models.feature_maps, strict=True):
            yield name, epsilon, float(mapped.dimension)


def _on_sets(world: World, folder: Path, todo: Job, labels: Mapping[str, Place], failed: Collection[str]) -> Values:
    """L1 errors of released class ratios on the groups of a file, and of the private rows' own ratios, NON-PRIVATE."""
    table, cut = world.split.table, world.split.cut
    with np.load(todo.sets) as file:
        rows, named, groups = file["X"].astype(np.float64), file["y"].astype(str), file["groups"]
    truth = np.array([named == name for name in table.classes], dtype=float).T
    places = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    ratios = np.array([truth[place].mean(axis=0) for place in places])
    found: Values = {}
    for name, models, epsilons in _released(world, folder, failed):
        for release, epsilon in enumerate(epsilons):
            for draw in range(models.draws(release)):
                guesses = np.array([models.predicted(release, draw, rows[place]) for place in places])
                error = float(np.abs(guesses - ratios).sum(axis=1).mean())
                found.setdefault((*labels[name], epsilon, SETS_ERROR), []).append(error)
    mean = table.class_counts(cut.order) / len(cut.order)
    found[(MEAN, "", np.inf, SETS_ERROR)] = [float(np.abs(mean - ratios).sum(axis=1).mean())]
    return found


def _of_data(world: World) -> Values:
    """Public numbers of the world, and the errors of the mean of all private labels, or of their ratios."""
    table, cut = world.split.table, world.split.cut
    numbers = {"classes": len(table.classes), "parties": cut.parties, "rows": len(cut.order)}
    found: Values = {("data", "", np.inf, name): [float(number)] for name, number in numbers.items()}
    if not table.classes:
        errors = table.labels[cut.test] - table.labels[cut.order].mean()
        found[MEAN, "", np.inf, MSE.name] = [float(np.mean(errors**2))]
    elif wants_targets(world.scenario):
        mean = table.class_counts(cut.order) / len(cut.order)
        found[MEAN, "", np.inf, L1.name] = [float(np.abs(one.proportions - mean).sum()) for one in world.targets()]
    return found


def run_all(todo: Sequence[Job], store: Store, workers: int, measure: Callable[[Job], list[Record]] = measured) -> None:
    """Run the jobs that the store lacks, several at a time, and keep each as it is done; says how far it has come.

    A job that cannot run is named, and the others go on.
    """
    keys = {one.key: one for one in todo}
    done = {record.key for record in store.of(keys)}
    left = sorted((one for key, one in keys.items() if key not in done), key=lambda one: one.split)  # all sets soon
    if not left:
        return
    print(f"{len(left)} of {len(keys)} worlds to run; results go to {store.path}", file=sys.stderr)
    progress = _Progress(len(left))
    with ProcessPoolExecutor(workers, get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
        running = {pool.submit(measure, one): one for one in left}
        try:
            for future in as_completed(running):
                _keep(future, running[future], store)
                progress.step(running[future])
        except KeyboardInterrupt:
            print("\ninterrupted: once the worlds under way are kept, the same command can go on", file=sys.stderr)
            underway = [future for future in running if not future.done() and not future.cancel()]
            for future in as_completed(underway):
                _keep(future, running[future], store)
            raise


def _keep(future: Future[list[Record]], one: Job, store: Store) -> None:
    try:
        store.add(future.result())
    except FederationError as error:
        print(f"\n{one.part}, {one.set}, {one.world}: left out, {error}", file=sys.stderr)


class _Progress:
    """A line on standard error, each time on a terminal and from time to time elsewhere."""

    def __init__(self, number: int) -> None:
        self._all, self._done = number, 0
        self._started = self._said = time.monotonic()

    def step(self, one: Job) -> None:
        """A job more is done."""
        self._done += 1
        now, live = time.monotonic(), sys.stderr.isatty()
        if not live and now - self._said < _SECONDS_BETWEEN_LINES and self._done < self._all:
            return
        self._said = now
        left = (now - self._started) / self._done * (self._all - self._done) / 60
        line = (
            f"{self._done}/{self._all}, about {left:.0f} min left: {one.part} {one.set} {one.world} split {one.split}"
        )
        end = "\n" if not live or self._done == self._all else ""
        print(f"\r\x1b[K{line}" if live else line, end=end, file=sys.stderr, flush=True)
