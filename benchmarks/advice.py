"""How good advice is: regret of both stages over data sets, smallest epsilons, and formulas beside what was measured.

Run from the repository root: python -m benchmarks.advice [--units label,row,party,real,ratio] [--splits N] [--draws N]
[--sets NAME,...] [--rows N] [--parties K,K,...] [--data-dir FOLDER] [--out FILE.csv] [--jobs N] [--seconds N]

Every protocol that `federation advise` would rank for a unit is run on each set (the shipped ones, the environment
variable FEDERATION_DATA naming their folder, and generated ones; or those of a folder, as benchmarks.defaults reads
them) at every number of parties and epsilon, with common splits and parties. Stage 1 chooses by public numbers alone
(with public rows for the shape of noise, and without; with the share of the largest class, and without). A pilot
chooses by one split, or two, with as many draws of noise as the product's, and is scored on the others; every split
takes its turn. Regret is how far the choice is behind the best eligible protocol, which is decided for each split on
the others, so that nothing is best by luck; few draws make it look worse than it is. Within .01 of accuracy or of the
L1 error of class ratios, or within 10 % of a squared error, is well chosen. Settings in which nothing beats the answer
that is the same for all rows are counted apart. Values are kept in --out, and a command that was interrupted goes on;
after --seconds no more is run.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from aggregator.advice import Protect, Ranked, Wish, contenders, rank
from aggregator.contract.protocol import Trust
from benchmarks.common import command_line
from benchmarks.defaults.cells import Cell, Table
from benchmarks.defaults.jobs import DELTA, MEAN, Job, Variant, job, measured, run_all
from benchmarks.defaults.part import Bar
from benchmarks.defaults.records import Store
from benchmarks.defaults.sets import AUXILIARY, CLASSES, REAL, TEST, TWO_CLASSES, Prepared, Readers, of_folder, prepared
from federation.contract.errors import InputError
from scenarios.advice.pilot import DRAWS, FEW, crossing, levelled
from scenarios.advice.pilot_runs import choice, standings
from scenarios.advice.target import numbers_of, spectrum_of, traces_of
from scenarios.advice.texts import named
from scenarios.runs.trial import worlds
from scenarios.scores.scoring import ACCURACY, L1, MSE
from scenarios.settings.schema import resolve

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
_JUDGED = (0.3, 1.0, 3.0)  # epsilons at which regret is counted
_METRICS = {"regression": MSE, "ratio": L1}
_NEAR = {ACCURACY.name: 0.01, MSE.name: 0.10, L1.name: 0.01}  # of errors of labels as a share
_OF_RATIOS = ("adult", "breast_cancer", "three_ordered", "made_2_classes", "made_3_classes")
_RARE = 0.1  # share of a bag's rare class
_SHARES = (0.5, 0.8)  # of the pooled gain, wanted of an epsilon
_NEEDED = 1.5
_FORMULA = 1.25
_REFERENCES = ("constant", "pooled")
_SLOW = ("error_marginals", "class_ratio")  # every draw is an exchange, or a fit: they get few


@dataclass(frozen=True)
class UnitOf:
    """What is protected, with which sets, and the trusts under which advice is judged, the least demanding last.

    With `bags` of class ratios each party is a bag, of which one class is rare, or most of it.
    """

    protect: Protect
    sets: Readers
    wanted: Callable[[Prepared], bool]
    trusts: tuple[Trust, ...]
    parties: tuple[int, ...]
    bags: bool = False


UNITS: Mapping[str, UnitOf] = {
    "label": UnitOf("label", TWO_CLASSES, lambda one: len(one.classes) == 2, (Trust.NONE, Trust.SECURE), (1, 10, 100)),
    "row": UnitOf("row", TWO_CLASSES, lambda one: len(one.classes) == 2, (Trust.NONE, Trust.SECURE), (1, 10, 100)),
    "party": UnitOf("party", CLASSES, lambda one: len(one.classes) > 1, (Trust.AGGREGATOR,), (30, 100, 400)),
    "real": UnitOf("label", REAL, lambda one: one.label_range is not None, (Trust.NONE,), (1, 10, 100)),
    "ratio": UnitOf(
        "label",
        {name: CLASSES[name] for name in _OF_RATIOS},
        lambda one: len(one.classes) > 1,
        (Trust.NONE,),
        (4, 12),
        bags=True,
    ),
}


@dataclass(frozen=True)
class Setting:
    """A job's set and parties under a trust: the wish without its epsilon, and the protocols that can keep it."""

    unit: str
    name: str
    world: str
    trust: Trust
    wish: Wish

    def ranked(self, epsilon: float, **known: object) -> tuple[Ranked, ...]:
        """The ranking by public numbers at an epsilon, with what else is known."""
        found = rank(replace(self.wish, epsilon=epsilon, trust=self.trust, **known)).ranked  # type: ignore[arg-type]
        return tuple(contenders(found))


def scenario_of(one: Prepared, count: int, draws: int, bags: bool = False) -> dict[str, object]:
    """The scenario of a set at so many parties, or bags."""
    data: dict[str, object] = {"source": str(one.file), "test": TEST, "auxiliary": AUXILIARY}
    if one.label_range is not None:
        data["range"] = list(one.label_range)
    privacy = {"epsilon": list(EPSILONS), "delta": DELTA}
    parties = {"count": count, **({"partition": {"majority": _RARE}} if bags else {})}
    return {"data": data, "parties": parties, "privacy": privacy, "trials": {"splits": 1, "noise": draws}}


def wish_of(unit: UnitOf, scenario: Mapping[str, object]) -> Wish:
    """The wish about a scenario, with the public numbers of its first split and the traces of its public rows."""
    kind = "class_ratio" if unit.bags else "pooled"
    [world] = worlds(resolve({"name": "numbers", **scenario, "protocols": [{"kind": kind}], "baselines": False}), None)
    wish = numbers_of(
        world,
        Wish("ratio" if unit.bags else "binary", unit.protect, unit.trusts[-1], unit.protect == "label", delta=DELTA),
    )
    if wish.task == "regression":
        return replace(wish, traces=traces_of(world))
    return replace(wish, spectrum=spectrum_of(world)) if wish.task == "binary" else wish


def variants_of(wish: Wish, trusts: Sequence[Trust]) -> list[Variant]:
    """All protocols that are worth a trial under the wish, by the names under which advice knows them."""
    every = {
        named(one): one
        for epsilon in EPSILONS
        for trust in trusts
        for one in contenders(rank(replace(wish, epsilon=epsilon, trust=trust)).ranked)
    }
    return [Variant(name, every[name].kind, dict(every[name].options)) for name in sorted(every)]


def planned(
    name: str, sets: Sequence[Prepared], counts: Sequence[int], splits: int, draws: int
) -> Iterator[tuple[Job, Setting]]:
    """Every job of a unit with the settings that it serves; slow protocols have jobs of their own, the last ones."""
    unit, wishes = UNITS[name], dict[tuple[str, int], Wish]()
    for slow, split, one, count in itertools.product((False, True), range(splits), sets, counts):
        if count * 2 > one.private:
            continue
        scenario = scenario_of(one, count, min(draws, FEW) if slow else draws, unit.bags)
        if (one.name, count) not in wishes:
            wishes[one.name, count] = wish_of(unit, scenario)
        wish = wishes[one.name, count]
        variants = [found for found in variants_of(wish, unit.trusts) if (found.kind in _SLOW) is slow]
        if not variants:
            continue
        todo = job(f"advice-{name}", one.name, f"K={count}", split, variants, scenario, () if slow else _REFERENCES)
        for trust in unit.trusts:
            yield todo, Setting(name, one.name, f"K={count}", trust, wish)


@dataclass(frozen=True)
class Regret:
    """How far a choice is behind the best, and whether anything beats the constant answer there."""

    amount: float
    near: bool
    possible: bool


def regret(
    chosen: str, values: Mapping[str, Mapping[int, float]], splits: Sequence[int], constant: float, metric: str
) -> Regret:
    """Of a choice among `values` (by name and split), on the splits that count as the truth.

    Which one is best is decided for each split on the others, so that it is not the one with the luckiest noise there;
    of a single split by that split.
    """
    sign = 1 if metric == ACCURACY.name else -1
    names = list(values)
    truth = sign * np.array([[values[name][split] for split in splits] for name in names])  # (names, splits)
    others = truth.sum(axis=1, keepdims=True) - truth if len(splits) > 1 else truth
    best = float(np.take_along_axis(truth, others.argmax(axis=0)[None], axis=0).mean())
    own = float(truth[names.index(chosen)].mean())
    amount = own / best - 1 if metric == MSE.name else best - own
    return Regret(amount, amount <= _NEAR[metric], float(truth.mean(axis=1).max()) > sign * constant)


def judged(setting: Setting, table: Table) -> Iterator[tuple[str, Regret]]:
    """(way of choosing, regret) at every epsilon, by stage 1 and by pilots."""
    metric = _METRICS.get(setting.wish.task, ACCURACY)
    for epsilon in _JUDGED:
        cell = Cell(setting.name, setting.world, "", epsilon)
        constant = table.reference(cell, MEAN if metric is L1 else "constant", metric.name)
        pooled = table.reference(cell, "pooled", metric.name)
        majority = constant if metric is ACCURACY else None
        ways: dict[str, dict[str, object]] = {
            "stage 1": {},
            "stage 1, largest class known": {"majority": majority},
            "stage 1, without public rows": {"traces": {}, "spectrum": ()},
            "stage 1, pooled accuracy known": {"attainable": pooled} if metric is ACCURACY else {},
        }
        ranked = {way: [named(one) for one in setting.ranked(epsilon, **known)] for way, known in ways.items()}
        # What is the same as something else, and so no candidate, hangs on what is known.
        candidates = {
            way: {name: found for name in names if (found := table.by_split(cell, name, metric.name))}
            for way, names in ranked.items()
        }
        if min(map(len, candidates.values())) < 2:
            continue
        for way, values in candidates.items():
            splits = sorted(set.intersection(*map(set, values.values())))
            yield way, regret(next(iter(values)), values, splits, constant, metric.name)
        values = candidates["stage 1"]
        first, splits = next(iter(values)), sorted(set.intersection(*map(set, values.values())))
        for seen in (1, 2):
            for some in itertools.combinations(splits, seen):
                others = [split for split in splits if split not in some]
                if not others:
                    continue
                tried = {name: {split: [found[split]] for split in some} for name, found in values.items()}
                taken = choice(standings(tried, metric), first, metric)
                yield f"pilot of {seen} split{'s' * (seen > 1)}", regret(taken, values, others, constant, metric.name)


def needed(setting: Setting, table: Table, seen: int = 1) -> Iterator[float]:
    """The epsilon that a pilot of so many splits finds over that of the other splits, for accuracies within reach."""
    curves: dict[str, dict[int, dict[float, float]]] = {}
    for epsilon in EPSILONS:
        cell = Cell(setting.name, setting.world, "", epsilon)
        for one in setting.ranked(epsilon):
            for split, value in table.by_split(cell, named(one), ACCURACY.name).items():
                curves.setdefault(named(one), {}).setdefault(split, {})[epsilon] = value
    place = Cell(setting.name, setting.world, "", 1.0)
    constant, pooled = (table.reference(place, kind, ACCURACY.name) for kind in ("constant", "pooled"))
    if not curves or not pooled > constant:
        return
    best = max(curves, key=lambda name: np.mean([np.mean(list(curve.values())) for curve in curves[name].values()]))
    found = {split: curve for split, curve in curves[best].items() if len(curve) == len(EPSILONS)}
    easy = table.by_split(Cell(setting.name, setting.world, "", math.inf), "pooled", ACCURACY.name)
    for share, some in itertools.product(_SHARES, itertools.combinations(found, seen)):
        others = {split: curve for split, curve in found.items() if split not in some}
        if not others:
            continue
        wanted = constant + share * (pooled - constant)
        truth = crossing(levelled(others, {}), wanted)
        pilot = crossing(levelled({split: found[split] for split in some}, easy), wanted)
        if truth is not None and EPSILONS[0] < truth:
            yield math.inf if pilot is None else pilot / truth


def formulas(setting: Setting, table: Table) -> Iterator[tuple[str, float]]:
    """(protocol, measured over predicted error) of regressions; (protocol, difference of the lost share) of classes.

    Where a regression is predicted to beat the constant answer it counts once more, under a name that says so.
    """
    for epsilon in EPSILONS:
        cell = Cell(setting.name, setting.world, "", epsilon)
        if setting.wish.task == "regression":
            residual, constant = (table.reference(cell, kind, MSE.name) for kind in ("pooled", "constant"))
            for one in setting.ranked(epsilon, residual=residual):
                value = table.value(cell, named(one), MSE.name)
                if one.expected is not None and not math.isnan(value):
                    predicted = residual + one.expected.error
                    yield one.kind, value / predicted
                    if predicted < constant:
                        yield f"{one.kind}, where it is to beat the constant answer", value / predicted
        elif setting.wish.task == "binary":
            pooled = table.reference(cell, "pooled", ACCURACY.name)
            for one in setting.ranked(epsilon, attainable=pooled):
                value = table.value(cell, named(one), ACCURACY.name)
                if one.expected is not None and not math.isnan(value) and pooled > 0.6:
                    yield one.kind, (1 - one.expected.error - value) / (pooled - 0.5)


def show(settings: Sequence[Setting], table: Table) -> list[Bar]:
    """Prints everything about the settings of one unit."""
    bars: list[Bar] = []
    for trust, task in dict.fromkeys((setting.trust, setting.wish.task) for setting in settings):
        some = [setting for setting in settings if (setting.trust, setting.wish.task) == (trust, task)]
        title = f"{some[0].unit}, {task}, trust {trust}"
        found: dict[str, list[Regret]] = {}
        for setting in some:
            for way, one in judged(setting, table):
                found.setdefault(way, []).append(one)
        if not found:
            continue
        print(f"\n{title}: {len(found['stage 1'])} settings with a choice")
        print(f"  {'chosen by':34} {'mean':>7} {'worst':>7} {'near':>6}   where something beats the constant")
        for way, every in found.items():
            real = [one for one in every if one.possible]
            shown = [f"{np.mean([one.amount for one in group]):7.4f} {max(one.amount for one in group):7.3f} "
                     f"{np.mean([one.near for one in group]):6.0%}" for group in (every, real) if group]  # fmt: skip
            print(f"  {way:34} {'   '.join(shown)}  ({len(real)} of {len(every)})")
            if real and way in ("stage 1", "pilot of 1 split"):
                bars.append(
                    Bar(f"{title}, {way}: well chosen", float(np.mean([one.near for one in real])), _bar(title, way))
                )
    ratios = [ratio for setting in settings for ratio in needed(setting, table)]
    if ratios:
        within = float(np.mean([1 / _NEEDED <= ratio <= _NEEDED for ratio in ratios]))
        print(f"  epsilon of a pilot over the needed one: median {np.median(ratios):.2f}, {len(ratios)} cases")
        bars.append(Bar(f"{settings[0].unit}: smallest epsilon within a factor {_NEEDED}", within, 0.8))
    kinds: dict[str, list[float]] = {}
    for setting in settings[:: len({one.trust for one in settings})]:
        for kind, value in formulas(setting, table):
            kinds.setdefault(kind, []).append(value)
    for kind, values in kinds.items():
        if settings[0].unit == "real":
            within = float(np.mean([1 / _FORMULA <= value <= _FORMULA for value in values]))
            print(f"  {kind}: measured over predicted error {np.median(values):.2f} (median), {len(values)} cells")
            bars.append(Bar(f"{kind}: predicted error within a factor {_FORMULA}", within, 0.9))
        else:
            error = math.sqrt(float(np.mean(np.square(values))))
            print(f"  {kind}: share of accuracy lost, predicted beside measured: rmse {error:.3f}, {len(values)} cells")
            if kind == "mean_operator":
                bars.append(Bar("mean_operator: rmse of the lost share", error, most=0.08))
    return bars


def _bar(title: str, way: str) -> float:
    if title.startswith("row"):
        return 0.79 if way == "stage 1" else 0.88
    return 0.9


def main() -> None:
    """Runs what is missing and prints the tables, the bars last."""
    parser = command_line(
        __doc__, units=",".join(UNITS), splits=4, draws=DRAWS, sets="", rows=3000, parties="", out="runs/advice.csv",
        jobs=1, seconds=100_000,
    )  # fmt: skip
    parser.set_defaults(data_dir=None)
    given = parser.parse_args()
    folder = None if given.data_dir is None else Path(given.data_dir).expanduser()
    names = [name for name in given.sets.split(",") if name]
    bars: list[Bar] = []
    until = time.monotonic() + given.seconds

    with tempfile.TemporaryDirectory() as place:
        store = Store(Path(given.out))
        for unit in given.units.split(","):
            if unit not in UNITS:
                raise SystemExit(f"--units: there is no unit '{unit}'; known: {', '.join(UNITS)}")
            known = UNITS[unit]
            readers = known.sets if folder is None else of_folder(folder)
            sets = []
            for name, read in readers.items():
                if not names or name in names:
                    try:
                        sets.append(prepared(name, read, given.rows, Path(place)))
                    except InputError as error:
                        print(f"{name}: skipped, {error}", file=sys.stderr)
            counts = [int(text) for text in given.parties.split(",") if text] or known.parties
            every = list(planned(unit, [one for one in sets if known.wanted(one)], counts, given.splits, given.draws))
            todo = list({one.key: one for one, _ in every}.values())
            if given.seconds:
                _run(todo, store, given.jobs or os.cpu_count() or 1, until)
            table = Table(store.of([one.key for one in todo]))
            settings = list({(one.name, one.world, one.trust): one for _, one in every}.values())
            if settings:
                bars += show(settings, table)
    print("\nbars")
    for bar in bars:
        print(f"  {bar}")


def _run(todo: Sequence[Job], store: Store, workers: int, until: float) -> None:
    """The jobs that are missing, in parts, while there is time."""
    if workers > 1:
        run_all(list(todo), store, workers)
        return
    done = {record.key for record in store.of([one.key for one in todo])}
    for one in todo:
        if one.key in done:
            continue
        if time.monotonic() > until:
            print("the time is over; the rest is left out", file=sys.stderr)
            return
        store.add(measured(one))


if __name__ == "__main__":
    main()
