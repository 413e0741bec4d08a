"""The run directory: everything that a run leaves behind, and what lets it resume after an interruption.

A trial is stored as hidden files with checksums as soon as it is done. An interrupted or failed run therefore keeps its
results, and a resumed run accepts no result that has changed since. One file of the run directory contains all
checksums (`Checksums`): it maps trials to their files, by paths in that directory.
"""

import json
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from federation.contract.errors import FederationError, InputError, of_disk, writing
from federation.contract.files import is_folder
from scenarios.data.catalogue import sha256
from scenarios.scores.results import Row, read_results, write_results

RUNS = Path("runs")


@dataclass(frozen=True)
class RunDirectory:
    """Paths and cells of one run; `fresh` when it held nothing before."""

    path: Path
    checksums: "Checksums"
    fresh: bool = False

    @classmethod
    def open(cls, out: Path | None, name: str, resume: bool) -> "RunDirectory":
        """The directory to write to: `out`, or runs/NAME (runs/NAME-2, ... for further runs).

        With `resume` an existing one is continued, `out`, or the latest of the name, and where there is none it is
        made: an interruption may come before anything is. Raises `InputError` when `out` holds files and is not to be
        resumed, or holds something else than a run, and for a run whose worlds have no checksums.
        """
        if out is None:
            *taken, free = _numbered(RUNS, name)
            out = taken[-1] if resume and taken else free
        if not is_folder(out) and out.exists():
            raise InputError(f"--out {out} is a file; name a directory")
        cells, fresh = out / ".cells", not out.exists() or not any(out.iterdir())
        if not fresh and not resume:
            raise InputError(f"--out {out} is not empty; add --resume to go on with its run, or name another directory")
        if not fresh and not is_folder(cells):
            raise InputError(f"nothing to resume: --out {out} holds files, but no run; name another directory")
        sums = cells / "checksums.json"
        if not sums.exists() and any(cells.glob("*.csv")):
            raise InputError(
                f"{sums} is missing, so that nobody can say whether the worlds beside it are as they were computed; "
                "restore it, or start again in another directory with --out"
            )
        with writing(f"to {out}", "name another directory with --out"):
            cells.mkdir(parents=True, exist_ok=True)
        return cls(out, Checksums(out, sums), fresh)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Work that writes here. Raises `FederationError` where the disk is full, or a file here cannot be written."""
        try:
            yield
        except OSError as error:
            full, file = of_disk(error), error.filename2 or error.filename
            if not full and not (isinstance(file, str) and self.path in Path(file).parents):
                raise
            where, remedy = (self.path, "make room") if full else (file, "mend this")
            raise FederationError(
                f"cannot write to {where}: {error.strerror}; finished worlds, if any, are kept: {remedy}, and "
                "--resume goes on with them"
            ) from error

    def discard(self) -> None:
        """Remove the directory with all that it holds."""
        shutil.rmtree(self.path, ignore_errors=True)

    def require_same_run(self, cells: Collection[str]) -> None:
        """Refuse to go on with worlds that are none of `cells`. Raises `InputError`."""
        finished = self._finished
        if finished and finished.isdisjoint(cells):
            raise InputError(f"{self.path} holds a run of another scenario; name another directory with --out")

    def require_unchanged(self, cells: Collection[str]) -> None:
        """Refuse to go on where files of finished worlds among `cells` are not as they were. Raises `InputError`."""
        broken = self.checksums.broken(cell for cell in cells if self.finished(cell))
        if broken:
            raise InputError(
                "\n".join(
                    f"{file} {what} since its world was finished; delete {self._record(cell)} to compute this world "
                    "again, or name another directory with --out"
                    for cell, file, what in broken
                )
            )

    @contextmanager
    def scratch(self, cell: str) -> Iterator[Path]:
        """An empty directory for one world's files, which goes again, so that a full disk has room for what is kept."""
        path = self.path / ".cells" / f"{cell}.work"
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def finished(self, cell: str) -> bool:
        """Whether the world was completed, now or before an interruption, and nobody has deleted its record."""
        return cell in self.checksums and self._record(cell).exists()

    @property
    def has_results(self) -> bool:
        """Whether any world was completed."""
        return bool(self._finished)

    def finish(
        self,
        cell: str,
        rows: Sequence[Row],
        swept: Sequence[str],
        summary: Mapping[str, Any],
        work: Path,
        models: Mapping[Path, Path],
    ) -> None:
        """Keep a world's rows, summary and `models` (where each is: where it stays); its checksums complete it.

        Whatever needs room on the disk is written to `work` first; a world that was finished before is not while its
        files change places.
        """
        table, record = work / "results.csv", work / "summary.json"
        write_results(table, rows, swept)
        record.write_text(json.dumps(dict(summary)))
        files = {table: self._table(cell), **models, record: self._record(cell)}
        sums = {target.relative_to(self.path).as_posix(): sha256(source) for source, target in files.items()}
        self.checksums.forget(cell)
        for source, target in files.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)
        self.checksums.keep(cell, sums)

    def rows(self, cell: str) -> list[Row]:
        """The rows of a finished world."""
        return read_results(self._table(cell))

    def summary(self, cell: str) -> dict[str, Any]:
        """The summary of a finished world."""
        found: dict[str, Any] = json.loads(self._record(cell).read_text())
        return found

    def model(self, variant: str, place: str, split: int) -> Path:
        """Where a variant's releases of one world stay: models/VARIANT/[PLACE/]split-N.npz."""
        return self.path / "models" / variant / place / f"split-{split}.npz"

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write one JSON artefact."""
        replaced(self.path / name, json.dumps(content, indent=2) + "\n")

    @property
    def _finished(self) -> set[str]:
        return {cell for cell in self.checksums.worlds if self.finished(cell)}

    def _table(self, cell: str) -> Path:
        return self.path / ".cells" / f"{cell}.csv"

    def _record(self, cell: str) -> Path:
        return self.path / ".cells" / f"{cell}.json"


def _numbered(parent: Path, name: str) -> list[Path]:
    """NAME, NAME-2, ... up to the first that does not exist."""
    paths = [parent / name]
    while paths[-1].exists():
        paths.append(parent / f"{name}-{len(paths) + 1}")
    return paths


class Checksums:
    """SHA-256 of every file of every finished world of the run in `root`, kept in `path`; a world is finished by them.

    Raises `InputError` for a `path` that holds something else.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     kept, model = Checksums(Path(folder), Path(folder) / "checksums.json"), Path(folder) / "model"
        ...     _ = model.write_text("learned")
        ...     kept.keep("first", {"model": sha256(model)})
        ...     _ = model.write_text("l3arned")
        ...     [(world, path, what)] = kept.broken(["first"])
        >>> world, path.name, what
        ('first', 'model', 'has changed')
    """

    def __init__(self, root: Path, path: Path) -> None:
        self._root, self._path = root, path
        self._known: dict[str, dict[str, str]] = self._read() if path.exists() else {}

    def __contains__(self, world: object) -> bool:
        return world in self._known

    @property
    def worlds(self) -> list[str]:
        """The finished worlds."""
        return list(self._known)

    def keep(self, world: str, sums: Mapping[str, str]) -> None:
        """The world is finished: from now on its files must have these checksums, by path."""
        self._write({**self._known, world: dict(sums)})

    def forget(self, world: str) -> None:
        """The world is not finished, as long as its files are being replaced."""
        if world in self._known:
            self._write({name: sums for name, sums in self._known.items() if name != world})

    def broken(self, worlds: Iterable[str]) -> list[tuple[str, Path, str]]:
        """Return the first changed file of each of these worlds that has one, and what is wrong with the file."""
        found = []
        for world in worlds:
            for name, expected in self._known.get(world, {}).items():
                path = self._root / name
                if not path.is_file():
                    found.append((world, path, "is missing"))
                    break
                if sha256(path) != expected:
                    found.append((world, path, "has changed"))
                    break
        return found

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            known = json.loads(self._path.read_text(encoding="utf-8"))
            if not (isinstance(known, dict) and all(map(_sums, known.values()))):
                raise ValueError("it is no mapping from worlds to the checksums of their files")
        except (OSError, ValueError) as error:
            raise InputError(
                f"{self._path} is damaged: {error}; restore it, or start again in another directory with --out"
            ) from error
        return known

    def _write(self, known: dict[str, dict[str, str]]) -> None:
        replaced(self._path, json.dumps(known, indent=0))
        self._known = known


def replaced(path: Path, text: str) -> None:
    """Write a file as a whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def _sums(found: object) -> bool:
    return isinstance(found, dict) and all(isinstance(one, str) for one in found.values())
