"""Checksums of the files that finished worlds left: what has changed since is not taken for a result.

All stand in one file of the run directory, a mapping from worlds to their files, by their paths in that directory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from federation.contract.errors import InputError


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
        """Of each of these worlds that has one the first file that is not as it was, and what is wrong with it."""
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


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def replaced(path: Path, text: str) -> None:
    """Write a file as a whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def _sums(found: object) -> bool:
    return isinstance(found, dict) and all(isinstance(one, str) for one in found.values())
