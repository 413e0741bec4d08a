"""The run directory: what a run leaves behind, and what lets it go on after an interruption.

A world is written as one hidden cell the moment it is done, so an interrupted or failed run keeps what it has.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from federation.contract.errors import InputError
from federation.contract.files import is_folder, read_object
from scenarios.scores.results import Row, read_results, write_results

RUNS = Path("runs")
_REMEDY = "remove it, and run again with --resume"


@dataclass(frozen=True)
class RunDirectory:
    """Paths and cells of one run; `fresh` when it held nothing before."""

    path: Path
    fresh: bool = False

    @classmethod
    def open(cls, out: Path | None, name: str, resume: bool) -> RunDirectory:
        """The directory to write to: `out`, or runs/NAME (runs/NAME-2, ... for further runs).

        With `resume` an existing one is continued: `out`, or the latest of the name. Raises `InputError` when `out`
        holds files and is not to be resumed, or holds no run to resume.
        """
        if out is None:
            *taken, free = _numbered(RUNS, name)
            if resume and not taken:
                raise InputError(f"nothing to resume: there is no {RUNS / name}; run without --resume first")
            out = taken[-1] if resume else free
        elif not is_folder(out) and out.exists():
            raise InputError(f"--out {out} is a file; name a directory")
        elif not resume and out.exists() and any(out.iterdir()):
            raise InputError(f"--out {out} is not empty; add --resume to go on with its run, or name another directory")
        elif resume and not is_folder(out / ".cells"):
            raise InputError(
                f"nothing to resume: --out {out} holds no run with a finished world; run without --resume first"
            )
        fresh = not out.exists() or not any(out.iterdir())
        try:
            (out / ".cells").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot write to {out}: {error.strerror}") from error
        return cls(out, fresh)

    def discard(self) -> None:
        """Remove the directory with all that it holds."""
        shutil.rmtree(self.path, ignore_errors=True)

    def require_same_run(self, cells: Collection[str]) -> None:
        """Refuse to go on with worlds that are none of `cells`. Raises `InputError`."""
        finished = {path.stem for path in (self.path / ".cells").glob("*.json")}
        if finished and finished.isdisjoint(cells):
            raise InputError(f"{self.path} holds a run of another scenario; name another directory with --out")

    def scratch(self, cell: str) -> Path:
        """An empty directory for one world's files."""
        path = self.path / ".cells" / f"{cell}.work"
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path

    def finished(self, cell: str) -> bool:
        """Whether the world was completed, now or before an interruption, and its files are whole."""
        try:
            return bool(len(self.rows(cell)) == self.summary(cell)["rows"])
        except (InputError, KeyError):
            return False

    @property
    def has_results(self) -> bool:
        """Whether any world was completed."""
        return any((self.path / ".cells").glob("*.json"))

    def finish(self, cell: str, rows: Sequence[Row], swept: Sequence[str], summary: Mapping[str, Any]) -> None:
        """Keep a world's rows and summary; the summary, written last, marks it complete."""
        write_results(self.path / ".cells" / f"{cell}.csv", rows, swept)
        partial = self.path / ".cells" / f"{cell}.partial"
        partial.write_text(json.dumps({**summary, "rows": len(rows)}))
        partial.replace(self.path / ".cells" / f"{cell}.json")
        shutil.rmtree(self.path / ".cells" / f"{cell}.work", ignore_errors=True)

    def rows(self, cell: str) -> list[Row]:
        """The rows of a finished world."""
        return read_results(self.path / ".cells" / f"{cell}.csv")

    def summary(self, cell: str) -> dict[str, Any]:
        """The summary of a finished world; one from before variants could fail alone has none that did."""
        return {"failed_variants": {}, **read_object(self.path / ".cells" / f"{cell}.json", _REMEDY)}

    def model(self, variant: str, place: str, split: int) -> Path:
        """Where a variant's releases of one world stay: models/VARIANT/[PLACE/]split-N.npz."""
        return self.path / "models" / variant / place / f"split-{split}.npz"

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write one JSON artefact."""
        (self.path / name).write_text(json.dumps(content, indent=2) + "\n")


def _numbered(parent: Path, name: str) -> list[Path]:
    """NAME, NAME-2, ... up to the first that does not exist."""
    paths = [parent / name]
    while paths[-1].exists():
        paths.append(parent / f"{name}-{len(paths) + 1}")
    return paths
