"""Good by default: what a user gets without choosing, scored beside what else there is: python -m benchmarks.defaults

[--parts party,natural,mean_operator,regressions,class_ratio,speed] [--splits N] [--draws N] [--sets NAME,...] [--quick]
[--data-dir DIR] [--out FILE.csv] [--jobs N]

Every figure comes from the product: a scenario for each set, way of dealing out rows and split, whose seed is the
number of the split; all variants share it. Sets are the shipped ones (the environment variable FEDERATION_DATA names
their folder; a set whose file is missing is skipped) and generated ones, or with --data-dir those of a folder: npz
files with X (n, d) of numbers, y (n,) of classes or real numbers, and perhaps groups (n,), which are natural parties
or bags. Real labels get the range that they have, which a private use must declare. At most 12,000 rows of a set are
used, 150,000 where groups are parties and 30,000 where they are bags.

Values are kept in --out, one row each, and a command that was interrupted goes on where it was. What is measured again
follows from settings and data, not from the code: after a change of the code name another file. --quick uses few sets,
rows and worlds, one split and two draws; its bars mean little. --jobs is how many worlds run at a time (0: one for
each processor).
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.common import command_line
from benchmarks.defaults import class_ratio, mean_operator, natural, party, regressions, speed
from benchmarks.defaults.jobs import run_all
from benchmarks.defaults.part import Asked, Bar, Part
from benchmarks.defaults.records import Store
from benchmarks.defaults.sets import CLASSES, NATURAL, RATIOS, REAL, TWO_CLASSES, Prepared, Readers, of_folder, prepared
from federation.contract.errors import InputError, nearest_name

_GROUPED = 150_000  # rows of a set whose groups are parties: of many unequal ones small ones are left
_BAGGED = 30_000  # rows of a set whose groups are bags
PARTS: Mapping[str, Part] = {
    "party": Part(CLASSES, ("breast_cancer", "digits", "three_ordered"), party.wanted, party.jobs, party.show),
    "natural": Part(NATURAL, ("har", "kdd99"), natural.wanted, natural.jobs, natural.show, _GROUPED, 6_000, True),
    "mean_operator": Part(
        TWO_CLASSES, ("breast_cancer", "digits_from_5"), mean_operator.wanted, mean_operator.jobs, mean_operator.show
    ),
    "regressions": Part(REAL, ("diabetes", "friedman1"), regressions.wanted, regressions.jobs, regressions.show),
    "class_ratio": Part(
        RATIOS,
        ("adult", "kdd99_by_service"),
        class_ratio.wanted,
        class_ratio.jobs,
        class_ratio.show,
        _BAGGED,
        6_000,
        True,
    ),
    "speed": Part({}, (), lambda _: False, speed.no_jobs, speed.show),
}


def known_sets(parts: Sequence[str], names: Sequence[str], folder: Path | None, quick: bool) -> dict[str, Readers]:
    """By part the sets with these names, or all that it takes where none is given; those of a folder suit all parts.

    Raises `InputError` for unknown parts, and for a name that no part has.
    """
    if unknown := [name for name in parts if name not in PARTS]:
        raise InputError(f"--parts: there is no part '{unknown[0]}'; known: {', '.join(PARTS)}")
    own = None if folder is None else of_folder(folder)
    known = {part: PARTS[part].sets if own is None or not PARTS[part].sets else own for part in parts}
    every = list(dict.fromkeys(name for sets in known.values() for name in sets))
    for name in names:
        if name not in every:
            raise InputError(f"--sets: there is no set '{name}'; known: {', '.join(every)}{nearest_name(name, every)}")
    found: dict[str, Readers] = {}
    for part, sets in known.items():
        wanted = names or (PARTS[part].quick_sets if quick and own is None else list(sets))
        found[part] = {name: sets[name] for name in wanted if name in sets}
    return found


def written(part: Part, sets: Readers, quick: bool, place: Path) -> list[Prepared]:
    """Those sets that a part can use, written to `place`; one whose data is missing is skipped with a message."""
    found = []
    for name, read in sets.items():
        try:
            one = prepared(name, read, part.quick_rows if quick else part.rows, place, part.grouped)
        except InputError as error:
            print(f"{name}: skipped, {error}", file=sys.stderr)
            continue
        if part.wanted(one):
            found.append(one)
    return found


def main() -> None:
    """Runs what is missing and prints the tables of all parts asked for, the bars last."""
    parser = command_line(
        __doc__, parts=",".join(PARTS), splits=5, draws=20, sets="", quick=False, out="runs/defaults.csv", jobs=0
    )
    parser.set_defaults(data_dir=None)
    given = parser.parse_args()
    folder = None if given.data_dir is None else Path(given.data_dir).expanduser()
    splits, draws = (1, 2) if given.quick else (given.splits, given.draws)
    asked = Asked(splits, draws, given.quick, folder is not None)
    parts, names = ([name.strip() for name in text.split(",") if name.strip()] for text in (given.parts, given.sets))
    try:
        for name in ("splits", "draws"):
            if getattr(given, name) < 1:
                raise InputError(f"--{name} must be a whole number from 1, got {getattr(given, name)}")
        sets = known_sets(parts, names, folder, given.quick)
        store, bars = Store(Path(given.out)), dict[str, list[Bar]]()
        with tempfile.TemporaryDirectory() as place:
            todo = {
                name: PARTS[name].jobs(written(PARTS[name], sets[name], given.quick, Path(place)), asked)
                for name in parts
            }
            keys = {name: [job.key for job in jobs] for name, jobs in todo.items()}
            run_all([job for jobs in todo.values() for job in jobs], store, given.jobs or os.cpu_count() or 1)
        for name in parts:
            print(f"\n=== {name}: {asked.splits} splits x {asked.draws} draws")
            bars[name] = PARTS[name].show(store.of(keys[name]), asked)
    except InputError as error:
        raise SystemExit(str(error)) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    print("\nbars" + " (of a quick run: they mean little)" * given.quick)
    for name, found in bars.items():
        for bar in found:
            print(f"  {name}, {bar}")


if __name__ == "__main__":
    main()
