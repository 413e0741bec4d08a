"""What a private selection is worth at the same total epsilon: beside public numbers, and beside a pilot for nothing.

Run from the repository root: python -m benchmarks.selection [--units label,party,real] [--sets NAME,...]
[--parties K,K,...] [--rows N] [--draws N] [--tries N] [--out FILE.json] [--seconds N]

Each of the first candidates of `federation advise` is run on two splits at a total epsilon, and at what is left of that
for a try. Choices are then made by the values of the first split: by public numbers, which spend nothing; by a pilot,
whose choice no guarantee covers; and by private selections, 400 of them, from the measured draws with noise on each
score. A selection is worth its own model, or, where it has only half of the total, what its choice reaches with the
other half. Choices of protocols are scored on the second split, and so is the best of all; a selection's own model on
the rows that chose it, which is to its advantage, beside the best there. Values are kept in --out; after --seconds no
more is measured.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from aggregator.advice import Ranked, contenders, rank
from benchmarks.advice import UNITS, scenario_of, wish_of
from benchmarks.common import command_line
from benchmarks.defaults.sets import TEST, Prepared, prepared
from federation.contract.guarantee import Adjacency
from federation.contract.randomness import NoiseBits
from federation.mechanisms.accounting.private_selection import RandomStopping, weakest_curve
from federation.numerics.rows import Floats
from scenarios.advice.pilot_runs import Bench, Deadline, OutOfTimeError
from scenarios.advice.private_selection import MOST_CANDIDATES
from scenarios.scores.scoring import ACCURACY, MSE

TOTALS = (1.0, 3.0)
_SELECTIONS = 400
_FEW, _SLOW = 3, "error_marginals"  # draws of what is an exchange each
WAYS = ("public numbers", "pilot (NON-PRIVATE)", "selection: its model", "selection: half and half")


def of_a_try(total: float, law: RandomStopping) -> float:
    """The epsilon of a try of which a selection costs `total`.

    Examples:
        >>> round(of_a_try(2.505, RandomStopping.of_mean(8)), 3)
        1.0
    """
    low, high = 0.0, total
    while high - low > 1e-9 * total:
        middle = (low + high) / 2
        cost, _ = law.spent(weakest_curve(middle), middle)
        low, high = (middle, high) if cost < total else (low, middle)
    return low


def selected(scores: Sequence[Floats], noise: float, law: RandomStopping, key: str) -> Iterator[tuple[int, float]]:
    """(candidate, its value) of private selections from draws of each candidate, with Laplace noise of this scale."""
    random, bits = np.random.default_rng(1), NoiseBits(1, key)

    def attempt() -> tuple[float, tuple[int, float]]:
        place = int(random.integers(len(scores)))
        value = float(random.choice(scores[place]))
        return value + float(random.laplace(0, noise)), (place, value)

    for _ in range(_SELECTIONS):
        yield law.best(attempt, bits)


def judged(
    values: Sequence[Mapping[tuple[int, float], Floats]], total: float, law: RandomStopping, moved: float
) -> dict[str, float]:
    """What each way of choosing loses of the score (larger is better), from values by split, candidate and epsilon.

    `moved` is how far one unit moves a score.
    """
    known = len({place for place, _ in values[0]})

    def at(split: int, epsilon: float) -> list[Floats]:
        return [values[split][place, epsilon] for place in range(known)]

    here, there = ([float(one.mean()) for one in at(split, total)] for split in (0, 1))
    whole, half = of_a_try(total, law), of_a_try(total / 2, law)
    own = [value for _, value in selected(at(0, whole), moved / whole, law, "whole")]
    halves = [float(one.mean()) for one in at(1, total / 2)]
    chosen = [halves[place] for place, _ in selected(at(0, half), moved / half, law, "half")]
    found = there[0], there[int(np.argmax(here))], float(np.mean(own)), float(np.mean(chosen))
    best = max(there), max(there), max(here), max(there)
    return {way: most - value for way, most, value in zip(WAYS, best, found, strict=True)}


def measured(
    one: Prepared, name: str, parties: int, draws: int, law: RandomStopping, out: Path, until: Deadline
) -> tuple[list[Ranked], list[dict[tuple[int, float], Floats]], float]:
    """The candidates, their scores by split, and how far one unit moves a score. Raises `OutOfTimeError`."""
    unit = UNITS[name]
    scenario = scenario_of(one, parties, draws)
    wish = replace(wish_of(unit, scenario), trust=unit.trusts[0])
    ranked = [
        found for found in contenders(rank(wish).ranked) if found.guarantee.adjacency is Adjacency.REPLACE
    ][:MOST_CANDIDATES]  # fmt: skip
    metric, square = ACCURACY.name, 1.0
    if one.label_range is not None:
        metric, square = MSE.name, (one.label_range[1] - one.label_range[0]) ** 2
    settings = {key: scenario[key] for key in ("data", "parties", "privacy")}
    bench = Bench(settings, None, metric, out, private=True)
    epsilons = [level for total in TOTALS for share in (total, total / 2) for level in (share, of_a_try(share, law))]
    found: list[dict[tuple[int, float], Floats]] = []
    for split in (0, 1):
        scores: dict[tuple[int, float], Floats] = {}
        for place, candidate in enumerate(ranked):
            many = min(draws, _FEW) if candidate.kind == _SLOW else draws
            for (_, epsilon), reached in bench.measured([candidate.entry], split, many, epsilons, until).items():
                value = np.array(reached.values)
                scores[place, epsilon] = value if metric == ACCURACY.name else 1 - value / square
        found.append(scores)
    units = parties // 4 if name == "party" else round(TEST * one.rows)
    return ranked, found, 1 / units


def main() -> None:
    """Measures and prints a table for each unit."""
    parser = command_line(
        __doc__, units="label,party,real", sets="", parties="", rows=2000, draws=24, tries=8.0,
        out="runs/selection.json", seconds=600,
    )  # fmt: skip
    given = parser.parse_args()
    law, until = RandomStopping.of_mean(given.tries), Deadline(given.seconds)
    names = [name for name in given.sets.split(",") if name]
    Path(given.out).parent.mkdir(parents=True, exist_ok=True)
    for name in given.units.split(","):
        lost: dict[float, dict[str, list[float]]] = {total: {way: [] for way in WAYS} for total in TOTALS}
        unit = UNITS[name]
        with tempfile.TemporaryDirectory() as folder:
            for source, read in unit.sets.items():
                if names and source not in names:
                    continue
                one = prepared(source, read, given.rows, Path(folder))
                counts = [int(text) for text in given.parties.split(",") if text] or unit.parties
                for parties in counts:
                    if not unit.wanted(one) or parties * 2 > one.private:
                        continue
                    before = time.process_time()
                    try:
                        ranked, values, moved = measured(one, name, parties, given.draws, law, Path(given.out), until)
                    except OutOfTimeError:
                        print(f"{name}, {source}, {parties} parties: there was no time")
                        continue
                    if len(ranked) < 2 or any(len(each) < len(ranked) * 4 * len(TOTALS) for each in values):
                        continue
                    took = time.process_time() - before
                    for total in TOTALS:
                        found = judged(values, total, law, moved)
                        for way, amount in found.items():
                            lost[total][way].append(amount)
                        told = ", ".join(f"{way} {amount:.4f}" for way, amount in found.items())
                        print(
                            f"{name}, {source}, {parties} parties, epsilon {total:g} ({took:.0f} s): {told}", flush=True
                        )
        for total, by_way in lost.items():
            for way, amounts in by_way.items():
                if amounts:
                    near = np.mean([amount <= 0.01 for amount in amounts])
                    print(
                        f"  {name}, total epsilon {total:g}: {way:26} lost {np.mean(amounts):.4f} on average, "
                        f"{max(amounts):.3f} at worst, within .01 in {near:.0%} of {len(amounts)}"
                    )


if __name__ == "__main__":
    main()
