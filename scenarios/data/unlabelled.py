"""New rows with the raw columns of a model, of which hashed columns keep only what is not zero."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from scenarios.data.files import SVMLIGHT, open_sheet, read_rows, suffix
from scenarios.data.hashing import made_from
from scenarios.data.raw_rows import features_of, require_there
from scenarios.data.svmlight import read_hashed
from scenarios.data.tables import Table


def read_unlabelled(
    path: Path,
    columns: Sequence[str],
    text: Sequence[int] = (),
    *,
    missing: bool = False,
    unused: Collection[int] = (),
) -> Table:
    """The rows of `scenarios.data.files.read_rows` as a table, whose labels are all 0.

    Its last blocks are those of hashed columns, where these come last and whole, as models have them: so there may be
    more of such rows than memory holds with their zeros. Raises `InputError` as `read_rows`.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> names = [f"hash(x, 2 bits)[{place}]" for place in range(4)]
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "new.svm")
        ...     _ = path.write_text("1 4:0.5\\n1 2:4\\n")
        ...     read_unlabelled(path, names)
        Table('new.svm': 2 rows, 4 columns, real labels)
    """
    hashes = list(dict.fromkeys(known[0] for name in columns if (known := made_from(name)) is not None))
    plain = len(columns) - sum(one.width for one in hashes)
    if not hashes or [*columns[max(plain, 0) :]] != [name for one in hashes for name in one.names]:
        rows = read_rows(path, columns, text, missing=missing, unused=unused)
        return Table(path.name, tuple(columns), (), np.zeros(len(rows)), (rows,), tuple(text))
    if plain == 0 and hashes[0].column is None and suffix(path) in SVMLIGHT:
        hashed = read_hashed(path, hashes[0]).rows
        return Table(path.name, tuple(columns), (), np.zeros(len(hashed)), (hashed,))
    sheet = open_sheet(path, columns)
    require_there(sheet, columns, unused)
    rows = features_of(sheet, columns[:plain], text, missing, unused)
    made = [sheet.hashed(one) for one in hashes]
    return Table(path.name, tuple(columns), (), np.zeros(len(rows)), (rows, *made), tuple(text))
