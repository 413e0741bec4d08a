"""Groups as parties: persons, services, occupations, of unequal sizes and unlike in their classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.defaults.cells import Table, grouped
from benchmarks.defaults.jobs import Job, job
from benchmarks.defaults.part import Asked, Bar, said
from benchmarks.defaults.party import ACCURACY, AVERAGE, BEFORE, DEFAULT, LAWS, METRICS, VARIANTS, scenario
from benchmarks.defaults.records import Record
from benchmarks.defaults.sets import Prepared

NAMES = (DEFAULT, BEFORE, AVERAGE)
LEAST_GROUPS = 5
_COMPARED = [variant for variant in VARIANTS if variant.name in NAMES]
_BY_GROUPS: dict[str, object] = {"partition": {"by": "groups"}}


def wanted(prepared: Prepared) -> bool:
    """Whether a set has classes, and groups to be parties."""
    return bool(prepared.classes) and prepared.groups >= LEAST_GROUPS


def jobs(sets: Sequence[Prepared], asked: Asked) -> list[Job]:
    """One for each set and split."""
    return [
        job("natural", one.name, "groups", split, _COMPARED, scenario(one, _BY_GROUPS, asked))
        for split in range(asked.splits)
        for one in sets
    ]


def show(records: Iterable[Record], asked: Asked) -> list[Bar]:
    """Prints accuracy, balanced accuracy and AUC of every set, law and epsilon."""
    table = Table(records)
    cells = table.cells(NAMES, ACCURACY)
    if not cells:
        print("\nnatural: nothing is measured yet")
        return []
    print("\ngroups as parties: accuracy, balanced accuracy and AUC (two classes)")
    print(f"{'':10}{'epsilon':>7}  " + "".join(f"{name:18}" for name in (*NAMES, "constant", "pooled")))
    for name, of_set in grouped(cells, lambda cell: cell.set).items():
        parties = table.reference(of_set[0], "data", "parties")
        print(f"{name}, {parties:.0f} parties")
        for law in LAWS:
            some = [cell for cell in of_set if cell.noise == law]
            for cell in some:
                line = f"{law:10}{cell.epsilon:>7g}  "
                for variant in NAMES:
                    line += f"{' '.join(said(table.value(cell, variant, metric)) for metric in METRICS):18}"
                for kind in ("constant", "pooled"):
                    line += f"{' '.join(said(table.reference(cell, kind, metric)) for metric in METRICS):18}"
                print(line)
            errors = [table.mean([cell], DEFAULT, ACCURACY).error for cell in some]
            print(f"{'':17}  standard error of the default's accuracy over splits: at most {said(max(errors))}")
    return []
