"""Several files as one source: a pattern such as `days/Day*.svm`, whose files are taken by their numbers."""

from __future__ import annotations

import glob
import re
from pathlib import Path

from federation.contract.errors import InputError
from federation.contract.files import is_file


def files_of(path: Path) -> list[Path]:
    """The file at `path`, or all files of a pattern with * or ? in its last part, Day2 before Day10.

    Raises `InputError` for a pattern without files.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     for day in (10, 2):
        ...         Path(folder, f"Day{day}.svm").touch()
        ...     [file.name for file in files_of(Path(folder, "Day*.svm"))]
        ['Day2.svm', 'Day10.svm']
    """
    if not is_pattern(path):
        return [path]
    if not (found := _matching(path)):
        raise InputError(f"there is no file {path.name} in {path.parent.absolute()}; correct the pattern or folder")
    return found


def is_there(path: Path) -> bool:
    """Whether there is a file, or one of a pattern."""
    return bool(_matching(path)) if is_pattern(path) else is_file(path)


def is_pattern(path: Path) -> bool:
    """Whether it stands for several files: no file has that name, and * or ? is in it."""
    return bool(re.search(r"[*?]", path.name)) and not is_file(path)


def _matching(path: Path) -> list[Path]:
    found = path.parent.glob(glob.escape(path.name).replace("[*]", "*").replace("[?]", "?"))
    return sorted((file for file in found if is_file(file)), key=_by_number)


def _by_number(file: Path) -> list[tuple[int, str]]:
    """A name as texts and numbers, which sort by value."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", file.name)]
