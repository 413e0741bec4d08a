"""Protocols tried on rows that are at hand, within a time: each value is kept as soon as it is there."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from threadpoolctl import threadpool_limits

from federation.contract.errors import FederationError, InputError, writing
from federation.engines.inline import open_grid
from scenarios.runs.costs import Costs
from scenarios.runs.world import World, worlds
from scenarios.settings.protocol_options import BASELINES
from scenarios.settings.schema import resolve

NON_PRIVATE = (
    "NON-PRIVATE: this was made on the rows as they are, without noise beside them; no guarantee covers the figures, "
    "the ranking or the choice"
)
BALANCED = "balanced_accuracy"


class OutOfTimeError(BaseException):
    """The time is over; nothing on the way may take it for the fault of a party."""


@dataclass(frozen=True)
class Deadline:
    """So many seconds from now."""

    seconds: float
    started: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds until it is over; below 0 afterwards."""
        return self.seconds - (time.monotonic() - self.started)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Raise `OutOfTimeError` inside once it is over, where a signal can do so: in the main thread."""
        if self.left <= 0:
            raise OutOfTimeError
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def over(*_: object) -> None:
            raise OutOfTimeError

        before = signal.signal(signal.SIGALRM, over)
        signal.setitimer(signal.ITIMER_REAL, self.left)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


@dataclass(frozen=True)
class Values:
    """What one protocol, or one reference, reached on one split at one epsilon: a value for each noise draw.

    `metric` is that of its task; `balanced` is the mean balanced accuracy where there are classes.
    """

    metric: str
    values: tuple[float, ...]
    balanced: float | None = None

    @property
    def mean(self) -> float:
        """Over the draws."""
        return fmean(self.values)


class Bench:
    """Runs entries of a scenario on splits of its rows, and keeps what each reached in a file.

    `scenario` are its settings without protocols. `file`, where there is one, is read first: what was measured with the
    same settings and rows is not measured again. Raises `InputError` for a file that cannot be read or written.
    """

    def __init__(
        self, scenario: Mapping[str, Any], data_dir: Path | None, metric: str, file: Path | None, private: bool
    ) -> None:
        self._scenario, self._metric, self._file = dict(scenario), metric, file
        self._data_dir = None if data_dir is None else str(data_dir)
        self._note = NON_PRIVATE if private else "made on rows that are declared to be public"
        self._known: dict[str, dict[str, Any]] = {}
        if file is not None and file.exists():
            self._known = _read(file)

    def measured(
        self, entries: Sequence[Mapping[str, Any]], split: int, draws: int, epsilons: Sequence[float], until: Deadline
    ) -> dict[tuple[int, float], Values]:
        """What each of the entries reached, by its position and epsilon (infinite for references).

        Of entries that fail there is nothing. Raises `OutOfTimeError`, and `FederationError`s for data that cannot be
        used.
        """
        world = self._world(entries, split, draws, epsilons)
        key = _key(world, entries, split, draws, epsilons)
        if key not in self._known:
            with until.kept():
                found = self._run(world, len(entries))
            self._known[key] = {"found": found, "entries": [dict(one) for one in entries], "split": split}
            self._save()
        return {
            (int(place), float(epsilon)): Values(
                self._metric, tuple(values[self._metric]), fmean(values[BALANCED]) if values.get(BALANCED) else None
            )
            for place, by_epsilon in self._known[key]["found"].items()
            for epsilon, values in by_epsilon.items()
            if self._metric in values
        }

    def _world(self, entries: Sequence[Mapping[str, Any]], split: int, draws: int, epsilons: Sequence[float]) -> World:
        named = [
            dict(entry) if entry["kind"] in BASELINES else {**entry, "name": f"candidate-{place}"}
            for place, entry in enumerate(entries)
        ]
        whole = {
            **self._scenario,
            "name": "pilot",
            "protocols": named,
            "baselines": False,
            "privacy": {**self._scenario["privacy"], "epsilon": list(epsilons)},
            "trials": {"splits": split + 1, "noise": draws},
        }
        return worlds(resolve(whole), self._data_dir)[split]

    def _run(self, world: World, entries: int) -> dict[str, dict[str, dict[str, list[float]]]]:
        """Values by position, epsilon and metric."""
        places = {variant.name: place for place, variant in enumerate(world.variants)}
        found: dict[str, dict[str, dict[str, list[float]]]] = {}
        with tempfile.TemporaryDirectory() as folder, closing(open_grid("inline")) as grid, threadpool_limits(1):
            quiet = contextlib.redirect_stderr(io.StringIO())  # what a run says of its budget is what is measured here
            with quiet, contextlib.suppress(FederationError):
                rows, _ = world.run(grid, Costs(), Path(folder), sparing=True)
                for row in rows:
                    if row["metric"] in (self._metric, BALANCED):
                        by_metric = found.setdefault(str(places[row["variant"]]), {}).setdefault(
                            str(row["epsilon"]), {}
                        )
                        by_metric.setdefault(row["metric"], []).append(float(row["value"]))
        assert all(int(place) < entries for place in found), "variants are in the order of the entries"
        return found

    def _save(self) -> None:
        if self._file is None:
            return
        text = json.dumps({"note": self._note, "measured": self._known}, indent=1)
        with writing(f"to {self._file}", "name another file with --write"):
            self._file.write_text(text + "\n", encoding="utf-8")


def _read(file: Path) -> dict[str, dict[str, Any]]:
    try:
        known: dict[str, dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["measured"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file} is no file of a pilot; remove it, or name another scenario with --write") from error
    return known


def _key(world: World, entries: Sequence[Mapping[str, Any]], split: int, draws: int, epsilons: Sequence[float]) -> str:
    """Of all that a measurement rests on: rows, parties, protocols, noise."""
    plain = [world.key, [dict(one) for one in entries], split, draws, list(epsilons), world.scenario.privacy.delta]
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]
