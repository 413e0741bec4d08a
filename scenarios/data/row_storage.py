"""Storage of raw feature rows: in memory, or on disk when they are too large.

Rows on disk lie in a file of the temporary folder, which all processes of a run share.
"""

import atexit
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Sequence
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from federation.contract.errors import InputError
from federation.contract.randomness import digest
from federation.numerics.rows import Floats
from scenarios.data.hashing import read_for
from scenarios.data.sheets import NO_TEXT, Sheet, Stored
from scenarios.data.tables import cut, listed, pieces

_COLUMNS_SHOWN = 20


def features_of(
    sheet: Sheet, columns: Sequence[str], text: Sequence[int], missing: bool, unused: Collection[int] = ()
) -> Floats:
    """The columns of a sheet as raw features (n, d), found by name; those numbered in `text` as codes of texts.

    Those numbered in `unused` are 0, whether they are there or not. Raises `InputError` for missing columns and
    unreadable values.
    """
    needed = require_there(sheet, columns, unused)

    def fill(rows: Floats) -> None:
        for part in sheet.parts(needed):
            some = rows[part.first : part.first + part.table.num_rows]
            for i in (i for i in range(len(columns)) if i not in unused):
                some[:, i] = part.codes(columns[i]) if i in text else part.numbers(columns[i], missing=True)

    shape = (sheet.table.num_rows, len(columns))
    if isinstance(sheet.table, Stored):
        rows = mapped_rows([sheet.table.stamp, [*columns], sorted(text), sorted(unused)], shape, fill)
    else:
        fill(rows := np.zeros(shape))
    return rows if missing else complete(rows, sheet, columns, text)


def require_there(sheet: Sheet, columns: Sequence[str], unused: Collection[int] = ()) -> list[str]:
    """The columns of a sheet that these are made of, but for those numbered in `unused`.

    Raises `InputError` where several are not there.
    """
    there = {*sheet.header}
    needed = [*dict.fromkeys(read_for(name) for i, name in enumerate(columns) if i not in unused)]
    if len(lacking := [name for name in needed if name not in there]) > 1:
        raise InputError(
            f"{sheet.path} lacks {len(lacking)} of the {len(needed)} columns that are needed, "
            f"{listed([*map(cut, lacking)], _COLUMNS_SHOWN)}; it has {sheet.names}"
        )
    return needed


def complete(rows: Floats, file: Sheet | Path, columns: Sequence[str], text: Sequence[int] = ()) -> Floats:
    """The rows (n, d). Raises `InputError`, which names all columns with missing cells, where there are some."""

    def lacking(some: Floats) -> NDArray[np.bool_]:
        found = np.isnan(some)
        found[:, list(text)] = some[:, list(text)] == NO_TEXT
        return found

    if not any(lacking(part).any() for _, part in pieces(rows)):
        return rows
    absent = lacking(rows)
    row, column = np.argwhere(absent)[0]
    place = f"{file}, row {row} (counted from 0)" if isinstance(file, Path) else file.place(row)
    counts = [f"{cut(name)} {count}" for name, count in zip(columns, absent.sum(axis=0), strict=True) if count]
    raise InputError(
        f"{place}: column '{columns[column]}' is missing; missing cells, by column: {listed(counts, _COLUMNS_SHOWN)}; "
        "correct them or remove the rows, leave columns out with data.drop, or let the features (data.features) begin "
        "with impute, which fills in missing cells"
    )


def mapped_rows(what: Any, shape: tuple[int, int], fill: Callable[[Floats], None]) -> Floats:
    """Rows (n, d), float64, that `fill` writes to an array of zeros, read from the disk where they are used.

    The first process of this user that asks for `what`, JSON values that say which rows they are, fills the file; the
    others wait for it and share it. It lies in a folder of the temporary folder (the environment variable TMPDIR) that
    nobody else may open, and is removed when a process that asked for it ends.
    Raises `InputError` where there is no room for the file, and where the folder is somebody else's.
    """
    folder = Path(tempfile.gettempdir()) / f"federation-{os.getuid()}"
    file = folder / f"{digest(json.dumps([what, shape]), {})}.rows"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        _require_own(folder)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not file.exists():
                _make(file, shape, fill)
            found: Floats = np.memmap(file, np.float64, "r", shape=shape)
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written: {error.strerror}; name another folder in the environment variable TMPDIR"
        ) from error
    atexit.register(partial(file.unlink, missing_ok=True))
    return found


def _require_own(folder: Path) -> None:
    found = folder.lstat()
    if not folder.is_dir() or folder.is_symlink() or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise InputError(
            f"{folder} is not a folder that only you may open; remove it, or name another folder in the environment "
            "variable TMPDIR"
        )


def _make(file: Path, shape: tuple[int, int], fill: Callable[[Floats], None]) -> None:
    """Write a file, there as a whole or not at all. Raises `InputError` where there is no room, and `OSError`s."""
    part, size = file.with_suffix(".part"), 8 * prod(shape)
    try:
        with part.open("wb") as opened:
            if shutil.disk_usage(file.parent).free < size:
                raise InputError(
                    f"{file.parent} has no room for the {size / 2**30:.1f} GiB of numbers in the file; name a folder "
                    "on a larger disk in the environment variable TMPDIR"
                )
            opened.truncate(size)
            if hasattr(os, "posix_fallocate"):  # else a disk that is full later would end the process
                os.posix_fallocate(opened.fileno(), 0, size)
        fill(np.memmap(part, np.float64, "r+", shape=shape))
        part.rename(file)
    finally:
        part.unlink(missing_ok=True)
