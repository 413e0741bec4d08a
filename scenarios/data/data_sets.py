"""What a data set of the catalogue is made of: its reader, its file, and what its labels are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from federation.contract.errors import InputError
from scenarios.data.hashing import Hashing
from scenarios.data.tables import Table


@dataclass(frozen=True)
class DataSet:
    """One data set by name: where its rows come from, and what is known of its labels before they are read.

    `origin` says who made it, and what it is called there, at the address `url`; `licence` is what its owners allow, as
    they say there. With a `file`, which lies in the data directory, `make(data_set, path)` reads it; `holds` says what
    the file must hold. A data set without a file comes with scikit-learn or is generated:
    `make()` gives it. One that is `generated` anew for every split is made by `make(instance)` of the instance 0, 1,
    ..., which depends on that number alone, whatever the seed of the scenario, so that everybody who names the data
    set has the same rows. With `regression` the labels are real numbers; `label_range` [lo, hi] is the range that its
    documentation gives, if any. Texts and sparse rows are `hashed`, in a scenario by a stage such as this one, and
    `make(data_set, path, hashes)` reads them.
    """

    name: str
    description: str
    make: Callable[..., Table]
    file: str | None = None
    holds: str = ""
    origin: str = ""
    url: str = ""
    licence: str = ""
    generated: bool = False
    regression: bool = False
    label_range: tuple[float, float] | None = None
    hashed: Hashing | None = None

    def read(self, path: Path | None, instance: int = 0, hashes: Sequence[Hashing] = ()) -> Table:
        """Its rows, from the file at `path` if it has one. Raises `InputError` for a file of another content."""
        if path is not None:
            return self.make(self, path, hashes) if self.hashed else self.make(self, path)
        return self.make(instance) if self.generated else self.make()

    @property
    def citation(self) -> str:
        """Where it comes from and what its owners allow, in one line.

        Examples:
            >>> DataSet("own", "two rows", dict, origin="'Two Rows' of us", url="https://a.org", licence="CC0").citation
            "own: 'Two Rows' of us (https://a.org); licence: CC0"
        """
        return f"{self.name}: {self.origin}{f' ({self.url})' if self.url else ''}; licence: {self.licence}"

    def require_hashable(self, hashes: Sequence[Hashing]) -> None:
        """Refuse stages {hash: ...} for columns of numbers, and none where they are needed. Raises `InputError`."""
        if hashes and not self.hashed:
            raise InputError(
                f"data.features: hash is for texts and sparse rows, and '{self.name}' has columns of numbers; use "
                "{project: DIMENSIONS} to have fewer of them"
            )
        if self.hashed and not hashes:
            raise InputError(
                f"data.features: '{self.name}' holds texts or sparse rows; let the features begin with "
                f"{self.hashed.stage}"
            )

    def refusal(self, path: Path, found: str = "") -> InputError:
        """The error to raise for a file of another content."""
        return InputError(f"{path} must hold {self.holds}{f'; got {found}' if found else ''}")
