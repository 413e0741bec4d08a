"""Lines that several parts print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks.defaults.cells import Cell, Mean, Table, grouped
from benchmarks.defaults.part import said


def by_world(table: Table, cells: Sequence[Cell], names: Sequence[str], metric: str) -> None:
    """Prints means over sets: a line for each world, a column for each variant with all epsilons."""
    epsilons = sorted({cell.epsilon for cell in cells})
    width = max(5 * len(epsilons), *map(len, names)) + 3
    print(f"{'':>9}{'sets':>5}  " + "".join(f"{name:{width}}" for name in names))
    errors = []
    for world, some in grouped(cells, lambda cell: cell.world).items():
        line = f"{world!s:>9}{len({cell.set for cell in some}):>5}  "
        for name in names:
            means = [table.mean([c for c in some if c.epsilon == epsilon], name, metric) for epsilon in epsilons]
            errors += [mean.error for mean in means]
            line += f"{' '.join(said(mean.value) for mean in means):{width}}"
        print(line)
    print(f"standard errors over splits: {said(float(np.median(errors)))} in the median, at most {said(max(errors))}")


def each(epsilons: Iterable[float]) -> str:
    """Epsilons as a title lists them."""
    return " ".join(f"{epsilon:g}" for epsilon in sorted(set(epsilons)))


def with_error(mean: Mean) -> str:
    """A mean and, behind it, its standard error."""
    return f"{said(mean.value)} ({said(mean.error)})"
