"""The file of public rows of a deployment: which of its columns are features, and its rows for the aggregator."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from federation.contract.errors import InputError
from federation.signed_messages.agreement import Column
from scenarios.data.archives import Archive
from scenarios.data.files import open_sheet, read_rows, suffix
from scenarios.data.hashing import Hashing
from scenarios.data.raw_rows import features_of
from scenarios.simulated.simulation import PublicRows


def feature_columns(path: Path, others: Collection[str], hashes: Sequence[Hashing] = ()) -> tuple[Column, ...]:
    """The columns of a file of public rows that are features: all but `others`, and whether each is a text.

    Those that are hashed are numbers, and stand behind all others.

    Raises `InputError` for a file that cannot be read, whose columns have no names, or in which no feature is left.
    """
    if suffix(path) == ".npz":
        archive = Archive(path)
        rows = archive.tables("X", missing=True)[0].astype(np.float64)
        if "feature_names" not in archive:
            raise InputError(
                f"data.auxiliary: the columns of {path} have no names, by which sites could find them in their tables; "
                "add an array feature_names, or save the rows as a CSV or Parquet file"
            )
        found = [Column(name=name) for name in archive.column_names("feature_names", rows)]
    else:
        hashed = [name for one in hashes for name in one.names]
        sheet, words = open_sheet(path, hashed), {one.column for one in hashes}
        if absent := [name for name in words if name is not None and name not in sheet.header]:
            raise InputError(f"data.auxiliary: {path} has no column '{absent[0]}' to hash; it has {sheet.names}")
        own = [name for name in sheet.header if name not in {*others, *words, *hashed}]
        found = [Column(name=name, text=sheet.is_text(name)) for name in own]
        found += [Column(name=name) for name in hashed]
    features = tuple(column for column in found if column.name not in others)
    if not features:
        raise InputError(f"data.auxiliary: {path} has no column that could be a feature; name a file that has")
    return features


def sha256(path: Path) -> str:
    """Of a file's contents, in hexadecimal digits. Raises `InputError` where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def public_rows(
    file: str, digest: str, columns: Sequence[str], text: Sequence[int], missing: bool, folder: str = ""
) -> PublicRows:
    """The public rows of a plan, by name of a file in a folder (`aggregator.trial.plan.PublicTable`).

    Raises `InputError` for a file that is not the one the sites have agreed to.
    """
    path = Path(folder, file)
    if sha256(path) != digest:
        raise InputError(f"{path} is not the file that the sites have agreed to; restore it from a copy")
    if suffix(path) == ".npz":
        rows = read_rows(path, columns, missing=missing)
    else:
        rows = features_of(open_sheet(path, columns), columns, text, missing)
    return PublicRows(rows, tuple(columns), tuple(text))
