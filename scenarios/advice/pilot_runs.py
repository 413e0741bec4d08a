"""Runs of a pilot within a time limit, and the comparison of its candidates.

Each value is kept as soon as it is measured. Candidates are compared with each other and with baselines by means,
intervals and an assessment.
"""

import contextlib
import hashlib
import io
import json
import math
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from aggregator.contract.protocol import Metric
from federation.contract.errors import FederationError, InputError, writing
from federation.engines.inline import open_grid
from scenarios.reports.summary import student_interval
from scenarios.runs.progress import Costs
from scenarios.runs.trial import World, worlds
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
    """Return a key of all that a measurement depends on: rows, parties, protocols, noise."""
    plain = [world.key, [dict(one) for one in entries], split, draws, list(epsilons), world.scenario.privacy.delta]
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]


Useful = Literal["useful", "as the constant", "below the constant"]

LEAST_FOR_INTERVAL = 3  # splits: two give one degree of freedom, and intervals without sense
_TIES = 0.005  # of accuracy, and of ratios, by which the first by public numbers may be behind and still be taken
_TIES_OF_ERRORS = 0.05  # the same of squared errors, as a share
_CHANCE = 0.55  # balanced accuracy of two classes below which nothing is learned


@dataclass(frozen=True)
class Standing:
    """One candidate: its mean over splits, and how far it is behind the best where both have as many splits.

    `interval` is of that distance, at 95 %; None with fewer than three splits.
    """

    name: str
    mean: float
    splits: int
    behind: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Verdict:
    """What the best is worth: beside the constant answer, and as a share of what the pooled rows gain over that.

    `kept` is None where they gain nothing.
    """

    finding: Useful
    best: float
    constant: float
    pooled: float
    kept: float | None


def standings(values: Mapping[str, Mapping[int, Sequence[float]]], metric: Metric) -> list[Standing]:
    """The candidates by their means, the best first; those with most splits first. `values` by name and split.

    Draws within a split are averaged first.

    Examples:
        >>> from scenarios.scores.scoring import ACCURACY
        >>> found = standings({"a": {0: [0.8, 0.9]}, "b": {0: [0.7, 0.7], 1: [0.9]}}, ACCURACY)
        >>> [(one.name, round(one.mean, 2), one.splits) for one in found]
        [('b', 0.8, 2), ('a', 0.85, 1)]
    """
    means = {name: {split: float(np.mean(draws)) for split, draws in found.items()} for name, found in values.items()}
    sign = -1 if metric.higher_is_better else 1
    order = sorted(means, key=lambda name: (-len(means[name]), sign * fmean(means[name].values())))
    found = []
    for name in order:
        common = sorted(means[name].keys() & means[order[0]].keys())
        differences = [sign * (means[name][split] - means[order[0]][split]) for split in common]
        own = interval(differences) if name != order[0] else None
        found.append(Standing(name, fmean(means[name].values()), len(means[name]), fmean(differences), own))
    return found


def interval(differences: Sequence[float]) -> tuple[float, float] | None:
    """A t-interval at 95 % of the mean of differences; None of fewer than three.

    Examples:
        >>> interval([0.1, 0.2]), [round(end, 3) for end in interval([0.1, 0.2, 0.3])]
        (None, [-0.048, 0.448])
    """
    return student_interval(differences) if len(differences) >= LEAST_FOR_INTERVAL else None


def better_half(values: Mapping[str, float], first: str, metric: Metric) -> list[str]:
    """The names that go on: the better half of them, at least two, and always the `first` by public numbers.

    Examples:
        >>> from scenarios.scores.scoring import MSE
        >>> better_half({"a": 4.0, "b": 1.0, "c": 2.0, "d": 3.0}, "a", MSE)
        ['b', 'c', 'a']
    """
    order = sorted(values, key=lambda name: -values[name] if metric.higher_is_better else values[name])
    kept = order[: max(2, math.ceil(len(order) / 2))]
    return kept if first in kept or first not in values else [*kept, first]


def choice(found: Sequence[Standing], first: str, metric: Metric) -> str:
    """The best, or the first by public numbers where it is hardly behind: a tie goes to what tells nothing.

    Examples:
        >>> from scenarios.scores.scoring import ACCURACY
        >>> near = [Standing("a", 0.85, 3, 0.0, None), Standing("b", 0.845, 3, 0.005, None)]
        >>> choice(near, "b", ACCURACY), choice(near, "c", ACCURACY)
        ('b', 'a')
    """
    own = next((one for one in found if one.name == first), None)
    if own is None:
        return found[0].name
    allowed = _TIES if metric.bounds[1] < math.inf else _TIES_OF_ERRORS * abs(found[0].mean)
    return first if own.behind <= allowed and own.splits == found[0].splits else found[0].name


def verdict(
    best: Mapping[int, Sequence[float]],
    constant: Mapping[int, float],
    pooled: Mapping[int, float],
    metric: Metric,
    balanced: float | None,
) -> Verdict:
    """What the best is worth; all by split. `balanced` is its balanced accuracy where there are two classes.

    It is as the constant answer where it is less than a standard error above it, or tells the classes apart by chance.

    Examples:
        >>> from scenarios.scores.scoring import ACCURACY
        >>> verdict({0: [0.8], 1: [0.82]}, {0: 0.6, 1: 0.6}, {0: 0.9, 1: 0.9}, ACCURACY, 0.8)
        Verdict(finding='useful', best=0.81, constant=0.6, pooled=0.9, kept=0.7)
    """
    sign = 1 if metric.higher_is_better else -1
    common = sorted(best.keys() & constant.keys())
    gains = [sign * (float(np.mean(best[split])) - constant[split]) for split in common]
    spread: Sequence[float] = gains if len(gains) > 1 else [sign * value for value in best[common[0]]]
    error = float(np.std(spread, ddof=1)) / math.sqrt(len(spread)) if len(spread) > 1 else 0.0
    gain = float(np.mean(gains))
    finding: Useful = "useful"
    if gain < -error:
        finding = "below the constant"
    elif gain <= error or (balanced is not None and balanced < _CHANCE):
        finding = "as the constant"
    most = sign * (fmean(pooled.values()) - fmean(constant.values()))
    means = (float(np.mean([np.mean(best[split]) for split in common])), fmean(constant.values()))
    return Verdict(finding, *means, fmean(pooled.values()), gain / most if most > 0 else None)
