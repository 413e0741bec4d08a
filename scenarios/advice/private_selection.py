"""Private selection of a protocol: private training on some units, private scores on the others, the best is kept.

Each run draws one of the candidates and runs it with fresh noise of the operating system. It then scores the model,
with noise as well, on units that the model did not learn from. A unit is in one of the two parts, so a run costs the
larger of both (McSherry 2009, Theorem 4).

The number of runs is random. It is drawn before a row is read, and it stays secret. The cost of the best run covers the
model and the noisy score; `federation.mechanisms.accounting.private_selection` contains the proof. The report of a
selection contains its choice and its cost, and nothing else.
"""

import contextlib
import io
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from aggregator.advice import Ranked, contenders
from aggregator.contract.registry import model
from aggregator.releases.model_files import ReleasedFile, head
from federation.contract.errors import FederationError, InputError
from federation.contract.guarantee import SEEDED, Adjacency, Assumption, Check, Guarantee, Keeper, Unit
from federation.contract.randomness import NoiseBits
from federation.engines.inline import open_grid
from federation.engines.nodes import SimulationGrid
from federation.mechanisms.accounting.private_selection import GEOMETRIC, RandomStopping, weakest_curve
from federation.mechanisms.noise.additive import AdditiveMechanism, calibrate_laplace, summation_error
from federation.numerics.rows import Floats
from scenarios.advice.target import Subject
from scenarios.advice.texts import named
from scenarios.data.catalogue import is_file_name
from scenarios.runs.progress import Costs, silent
from scenarios.runs.trial import World, worlds
from scenarios.scores.scoring import REGRESSION
from scenarios.settings.parties import partition_kind
from scenarios.settings.protocol_options import task as task_of
from scenarios.settings.schema import resolve
from scenarios.settings.words import BY, BY_CLASS

MOST_CANDIDATES = 4  # more of them are tried less often each
_NAME = "candidate"
_ROUNDING = 1e-9
_OF_LABELS = (Unit.LABEL, Unit.PERSON)  # which leave features public, those of public rows among them
_FAILED = (
    "a try failed, so that nothing was chosen; write a scenario without --charged-pilot, and a run of it shows which "
    "protocol does not suit the rows"
)
_PREMISES = (
    Assumption(
        "each try draws its noise afresh from the operating system, and is scored on units that it did not learn from",
        Check.ENFORCED,
    ),
    Assumption(
        "how many tries there were is told to nobody, nor how long they took; nothing of the others was kept, but that "
        "none of them failed",
        Check.DECLARED,
        Keeper.COORDINATOR,
    ),
    Assumption(
        "what every guarantee of a run of the scenario takes for granted of rows and options holds for the tries, too",
        Check.DECLARED,
        Keeper.HOLDER,
    ),
)


@dataclass(frozen=True)
class Selected:
    """What a private selection lets out: the choice, its model, and its noisy score, all under `guarantee`."""

    chosen: Ranked
    score: float
    models: ReleasedFile[Any]
    guarantee: Guarantee

    @property
    def released(self) -> ReleasedFile[Any]:
        """The model as a file that says what was paid for it, and not what a single try promises."""
        return replace(self.models, guarantees=(self.guarantee.to_dict(),))


@dataclass(frozen=True)
class Selection:
    """What a private selection will do and what it costs, by public numbers alone: no row has been read.

    `settings` are those of a scenario without protocols, `left_out` are candidates that are not tried, with the reason.
    `column` says whose rows are held out together; empty where single rows are. Raises `InputError` as `planned`.
    """

    candidates: tuple[Ranked, ...]
    left_out: tuple[str, ...]
    law: RandomStopping
    unit: Unit
    column: str
    settings: Mapping[str, Any]
    data_dir: Path | None
    epsilon: float
    delta: float  # of a try

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of all runs together."""
        epsilon, delta = self.law.spent(weakest_curve(self.epsilon, self.delta), self.epsilon)
        numbers: dict[str, float | int | str] = {
            "tries_on_average": self.law.mean,
            "eta": float(self.law.eta),
            "epsilon_of_a_try": self.epsilon,
            "delta_of_a_try": self.delta,
            "candidates": len(self.candidates),
        }
        return Guarantee(epsilon, delta, self.unit, Adjacency.REPLACE, "private_selection", numbers, _PREMISES)

    def made(self) -> Selected:
        """Try, and keep the best. Raises `FederationError` where a try fails: then nothing is chosen."""
        # Nothing that runs say may be seen: it would tell how many there are.
        unseen = contextlib.redirect_stderr(io.StringIO())
        with closing(open_grid("inline")) as grid, threadpool_limits(1), silent(), unseen:
            return self.law.best(lambda: self._try(grid), NoiseBits(None, "number of tries"))

    def _try(self, grid: SimulationGrid) -> tuple[float, Selected]:
        place = secrets.randbelow(len(self.candidates))
        models = self._released(grid, self._worlds[place])
        noise = self.noise
        score = float(noise.release(np.array([self._score(models)]), NoiseBits(None, "score"))[0, 0])
        return score, Selected(self.candidates[place], score, models, self.guarantee)

    @cached_property
    def noise(self) -> AdditiveMechanism:
        """The noise of a score, which is a mean over held-out units of numbers between 0 and 1."""
        units = len(self._held_out)
        moved = (1 + summation_error(len(self._worlds[0].split.cut.test))) / units
        return calibrate_laplace(l1_sensitivity=moved, dimension=1, epsilon=self.epsilon)

    @cached_property
    def _worlds(self) -> list[World]:
        found, delta = [], {"delta": self.delta} if self.delta else {}
        for one in self.candidates:
            whole = {
                **self.settings,
                "name": "selection",
                "protocols": [{**one.entry, "name": _NAME}],
                "baselines": False,
                "privacy": {"epsilon": [self.epsilon], "entropy": "system", **delta},
                "trials": {"splits": 1, "noise": 1},
            }
            [world] = worlds(resolve(whole), None if self.data_dir is None else str(self.data_dir))
            if self.column:
                world = replace(world, spec=replace(world.spec, test={BY: self.column}))
            found.append(world)
        return found

    @cached_property
    def _held_out(self) -> list[np.ndarray]:
        """The held-out rows of each unit, or every row as one."""
        pieces = self._worlds[0].split
        test = pieces.cut.test
        if not self.column:
            return list(test[:, None])
        owners = pieces.table.groups[self.column][test]
        return [test[owners == owner] for owner in np.unique(owners)]

    def _released(self, grid: SimulationGrid, world: World) -> ReleasedFile[Any]:
        """One model of a candidate. Raises `FederationError`, also where it is worth less than was counted on."""
        with tempfile.TemporaryDirectory() as folder:
            _, summary = world.run(grid, Costs(), Path(folder))
            if summary["failed_variants"]:
                raise FederationError(_FAILED)
            file = Path(folder) / f"{_NAME}.npz"
            models = model(head(file)[0]).load(file)
        [record] = models.guarantees
        held = None if record.get("non_private") else Guarantee.from_dict(record)
        if (
            held is None
            or SEEDED in held.assumptions
            or held.epsilon > self.epsilon * (1 + _ROUNDING)
            or held.delta > self.delta * (1 + _ROUNDING)
            or held.adjacency is not Adjacency.REPLACE
            or not held.unit.covers(self.unit)
        ):
            raise InputError("a try promises less than its protocol said before, and so nothing can be proved of it")
        return models

    def _score(self, models: ReleasedFile[Any]) -> float:
        """The mean over units of the share of right answers, or of 1 less the squared error over that of the range."""
        pieces = self._worlds[0].split
        test, table = np.concatenate(self._held_out), pieces.table
        said, true = models.predicted(0, 0, table.rows(test)), table.labels[test]
        right: Floats = (said == true).astype(np.float64)
        if table.label_range is not None:
            lo, hi = table.label_range
            right = 1 - np.clip(np.nan_to_num(np.square((said - true) / (hi - lo)), nan=1.0, posinf=1.0), 0.0, 1.0)
        sizes = np.array([len(rows) for rows in self._held_out])
        return float(np.mean(np.add.reduceat(right, np.append(0, np.cumsum(sizes)[:-1])) / sizes))


def planned(subject: Subject, ranked: Sequence[Ranked], tries: float) -> Selection:
    """A private selection among the first of a ranking, with so many tries on average, as far as it can be proved.

    Raises `InputError` where it cannot: without rows, for class ratios, where some of the private rows play public
    ones, where labels decide who holds a row, where no column says whose rows are whose, and where there is nothing to
    choose from.
    """
    if not subject.has_data or subject.deployed:
        raise InputError(
            "--charged-pilot needs rows that are at hand: name a file of them, or a scenario; parties that are "
            "deployed answer no pilot"
        )
    if subject.wish.task == "ratio":
        raise InputError("--charged-pilot: class ratios have no answers of single rows to count; leave it out")
    if not ranked:
        raise InputError("there is no protocol to try: nothing keeps this wish")
    ranked = contenders(ranked)
    settings = subject.settings(ranked[0].entry)
    unit = ranked[0].guarantee.unit
    unit = Unit.PARTY if unit is Unit.PARTY_AND_AUXILIARY_ROW else unit
    if unit not in _OF_LABELS and not is_file_name(settings["data"].get("auxiliary")):
        raise InputError(
            "--charged-pilot: a part of your own rows would play the public ones, which no guarantee covers; name a "
            "file of rows that are public with --public-rows, or say --protect label --features public where labels "
            "alone are private"
        )
    dealt = partition_kind(settings["parties"].get("partition", "iid"))
    if dealt in BY_CLASS:
        raise InputError(
            f"--charged-pilot: parties.partition {dealt} deals rows by their labels, and one label moves many rows; "
            "use iid or {by: COLUMN}"
        )
    kept: list[Ranked] = []
    left_out: list[str] = []
    for one in ranked:
        if not one.guarantee.unit.covers(unit) or one.guarantee.adjacency is not Adjacency.REPLACE:
            left_out.append(f"{named(one)} (it protects a {one.guarantee.unit} that is added or removed)")
        elif len(kept) == MOST_CANDIDATES:
            left_out.append(f"{named(one)} (beyond the first {MOST_CANDIDATES})")
        else:
            kept.append(one)
    if len(kept) < 2:
        alone = f"there is only {named(kept[0])}" if kept else "there is none"
        raise InputError(f"--charged-pilot: nothing to choose from, as {alone} of which it can be proved; leave it out")
    law = RandomStopping.of_mean(tries, GEOMETRIC)
    delta = subject.wish.delta / law.mean if any(one.guarantee.delta for one in kept) else 0.0
    column = _column(unit, settings)
    return Selection(
        tuple(kept), tuple(left_out), law, unit, column, settings, subject.data_dir, subject.wish.epsilon, delta
    )


def _column(unit: Unit, settings: Mapping[str, Any]) -> str:
    """The column by whose values units are held out; empty for rows and labels. Raises `InputError` without one."""
    if unit in (Unit.ROW, Unit.LABEL):
        return ""
    partition = settings["parties"].get("partition")
    by = settings["data"].get("person") if unit is Unit.PERSON else partition
    found = by.get(BY) if isinstance(by, Mapping) else by if unit is Unit.PERSON else None
    if not found:
        raise InputError(
            f"--charged-pilot: which rows are one {unit}'s must be known, so that nobody is on both sides; name the "
            f"column with {'--person' if unit is Unit.PERSON else '--group'}"
        )
    return str(found)


def record(selection: Selection, found: Selected) -> dict[str, Any]:
    """All that may be told, as JSON has it."""
    return {
        "non_private": False,
        "charged": True,
        "chosen": named(found.chosen),
        "score": found.score,
        "score_noise": _deviation(selection),
        "guarantee": found.guarantee.to_dict(),
        "candidates": [named(one) for one in selection.candidates],
        "left_out": list(selection.left_out),
    }


def rows(selection: Selection, found: Selected) -> list[dict[str, str]]:
    """The choice with its noisy score."""
    return [
        {
            "chosen": named(found.chosen),
            _measure(found): f"{found.score:.3g}, give or take {_deviation(selection):.2g}",
            "cost": _cost(found),
        }
    ]


def sentences(selection: Selection, found: Selected) -> list[str]:
    """What was done and what it cost, what it chose, and what would have cost nothing."""
    first, chosen = named(selection.candidates[0]), named(found.chosen)
    told = [
        f"Private selection among {', '.join(map(named, selection.candidates))}: {selection.law.mean:.3g} tries on "
        "average; how many there were nobody may learn, and so no time may end it.",
        f"It cost {_cost(found)}, for the choice, its model and its score together.",
        f"Use {chosen}: its {_measure(found)} on rows held out is {found.score:.3g}, give or take "
        f"{_deviation(selection):.2g} for the noise of that number.",
    ]
    if selection.left_out:
        told.insert(1, f"Left out: {'; '.join(selection.left_out)}.")
    same = "the same" if chosen == first else first
    told.append(f"Public numbers alone choose {same}, for nothing.")
    return told


def why(found: Selected) -> str:
    """How the first was chosen, for a comment of a scenario; without a full stop."""
    return f"chosen by a private selection, which has spent {_cost(found)}; every ledger counts that"


def _cost(found: Selected) -> str:
    spent = found.guarantee
    return f"epsilon {spent.epsilon:.4g} and delta {spent.delta:.3g} for one {spent.unit} (replace)"


def _measure(found: Selected) -> str:
    regression = task_of([found.chosen.kind]) == REGRESSION
    return "1 less squared errors over that of the range" if regression else "share of right answers"


def _deviation(selection: Selection) -> float:
    return float(selection.noise.variance() ** 0.5)
