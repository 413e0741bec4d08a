"""What a data set of the catalogue is made of: its reader, its file, and what its labels are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from scenarios.data.tables import Table


@dataclass(frozen=True)
class Bundled:
    """A data set that needs no file: it is generated or comes with scikit-learn.

    With `regression` its labels are real numbers; `label_range` is the range that its documentation gives, if any.
    """

    description: str
    read: Callable[[], Table]
    regression: bool = False
    label_range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Generated:
    """A data set that is generated anew for every split: a scenario's splits are independent instances of it.

    `read(instance)` of the instance 0, 1, ... depends on that number alone, whatever the seed of the scenario, so that
    everybody who names the data set has the same rows. `regression` and `label_range` are as for a bundled one.
    """

    description: str
    read: Callable[[int], Table]
    regression: bool = False
    label_range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Filed:
    """A data set whose `file` lies in the data directory.

    `holds` says what the file must hold, `origin` where the original can be had. `regression` and `label_range` are as
    for a bundled one.
    """

    description: str
    read: Callable[[Path], Table]
    file: str
    holds: str
    origin: str
    regression: bool = False
    label_range: tuple[float, float] | None = None


DataSet = Bundled | Generated | Filed
