"""Files in svmlight format as sheets: a label, then pairs INDEX:VALUE of what is not zero, in every line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from federation.contract.errors import InputError
from scenarios.data.sheets import Sheet

LABEL = "y"
_FEATURE = re.compile(r"x([1-9][0-9]{0,8})")
_MOST_CELLS = 1 << 27  # 1 GiB: rows are kept with their zeros


def read_svmlight(path: Path, columns: Sequence[str] = ()) -> Sheet:
    """A sheet with the columns x1, x2, ... up to the largest index in the file or among `columns`, and the labels y.

    Indices start at 1, as svmlight and LIBSVM have them. Raises `InputError` for a file of another format, without
    rows, and with more than 2^27 cells, zeros among them.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "toy.svmlight")
        ...     _ = path.write_text("1 1:0.5 3:2\\n-1 2:4  # a comment\\n")
        ...     sheet = read_svmlight(path)
        >>> sheet.header, sheet.numbers("x3").tolist(), sheet.texts("y")
        (['x1', 'x2', 'x3', 'y'], [2.0, 0.0], ['1', '-1'])
    """
    import pyarrow
    from sklearn.datasets import load_svmlight_file

    try:
        rows, labels = load_svmlight_file(str(path), zero_based=False)
    except (ValueError, OverflowError, OSError) as error:
        said = " ".join(str(error).split())[:120]
        raise InputError(
            f"{path} is not of the svmlight format ({said}); every line is LABEL INDEX:VALUE ..., with indices from 1"
        ) from error
    wanted = [int(found[1]) for found in map(_FEATURE.fullmatch, columns) if found]
    width = max([rows.shape[1], *wanted])
    if not rows.shape[0] or not rows.nnz:
        raise InputError(f"{path} has no rows with a value; name another file")
    if rows.shape[0] * width > _MOST_CELLS:
        raise InputError(
            f"{path} has {rows.shape[0]} rows of {width} columns, zeros among them, more than the {_MOST_CELLS} cells "
            "that are kept; take fewer rows or columns"
        )
    rows.resize(rows.shape[0], width)
    whole = labels == np.floor(labels)
    cells = {f"x{i + 1}": column for i, column in enumerate(rows.toarray().T)}
    cells[LABEL] = labels.astype(np.int64) if whole.all() else labels
    return Sheet(path, pyarrow.table(cells))
