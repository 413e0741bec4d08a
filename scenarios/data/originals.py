"""Every data set whose file is made from downloads: which files these are, and how it is made."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from federation.contract.errors import InputError, nearest_name
from scenarios.data import original_formats as category_files
from scenarios.data import original_formats as number_files
from scenarios.data import original_formats as text_files
from scenarios.data.catalogue import entry, names
from scenarios.data.original_formats import Arrays, Downloads
from scenarios.data.tables import DataSet

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class Original:
    """The official `files` of a data set, in words; with `note` what is to be done first or is otherwise here.

    `make(downloads)` gives the arrays or the table of the data set's file; `copy(downloads, path)` makes the file.
    """

    files: str
    make: Callable[[Downloads], Arrays | pyarrow.Table] | None = None
    copy: Callable[[Downloads, Path], None] | None = None
    note: str = ""

    def save(self, folder: Path, to: Path) -> None:
        """The file of the data set at `to`, made from a folder of downloads. Raises `InputError`."""
        found = Downloads(folder)
        if self.copy is not None:
            self.copy(found, to)
            return
        assert self.make is not None  # one of the two is there
        made: Any = self.make(found)
        with TemporaryDirectory(dir=to.parent) as beside:  # so that what is there is whole
            path = Path(beside, to.name)
            if isinstance(made, dict):
                np.savez_compressed(path, **made)
            else:
                from pyarrow.parquet import write_table

                write_table(made, path)
            os.replace(path, to)


ORIGINALS = {
    "adult": Original("adult.data and adult.test", category_files.adult),
    "ctg": Original(
        "CTG.csv",
        number_files.ctg,
        note='CTG.xls is of a spreadsheet program: save its sheet "Raw Data" as CTG.csv first',
    ),
    "har": Original("the folder 'UCI HAR Dataset' of UCI HAR Dataset.zip, unpacked", number_files.har),
    "higgs": Original("HIGGS.csv or HIGGS.csv.gz", number_files.higgs, note="its first 25972 rows are taken"),
    "kdd99": Original("kddcup.data_10_percent and corrected, packed (.gz) or not", category_files.kdd99),
    "mnist": Original(
        "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, packed "
        "(.gz) or not",
        number_files.mnist,
    ),
    "housing": Original("housing.csv", number_files.housing),
    "protein": Original("CASP.csv", number_files.protein),
    "census_weeks": Original("census-income.test, packed (.gz) or not", category_files.census_weeks),
    "acoustic": Original("acoustic_scale and acoustic_scale.t, packed (.bz2) or not", number_files.acoustic),
    "malicious_url": Original(
        "Day0.svm to Day19.svm of url_svmlight.tar.gz, unpacked",
        copy=text_files.copied_days,
        note="they are read as they are, and copied",
    ),
    "youtube_spam": Original(", ".join(text_files.VIDEOS), text_files.youtube_spam),
    "tweets": Original("train.raw and test.raw", text_files.tweets),
    "census_1940": Original(
        "census_1940.csv",
        copy=partial(text_files.copied, "census_1940.csv"),
        note="an extract has a name of its own, such as usa_00001.csv: unpack it, and rename it; it is read as it is, "
        "and copied",
    ),
    "criteo_sscl": Original(
        "CriteoSearchData",
        copy=partial(text_files.copied, "CriteoSearchData"),
        note="it is read as it is, and copied",
    ),
}


def original(name: str) -> tuple[DataSet, Original]:
    """A data set that is made from downloads, and how. Raises `InputError` for any other.

    Examples:
        >>> original("protein")[1].files
        'CASP.csv'
    """
    known = entry(name)
    if known is None:
        raise InputError(
            f"there is no data set '{name}'; federation data lists them{nearest_name(name, names())}; your own files "
            "need no preparation"
        )
    if known.file is None:
        raise InputError(f"'{name}' needs no file: {known.origin}; scenarios name it as their data.source")
    return known, ORIGINALS[name]


def target(known: DataSet, to: Path | None, data_dir: Path | None) -> Path:
    """Where the file of a data set is to be made; of several files their folder. Raises `InputError`."""
    if to is None and data_dir is None:
        raise InputError(
            "no data directory is given: name it with --data-dir or FEDERATION_DATA, or the file with --to"
        )
    path = Path(str(known.file))
    file = (path.parent if "*" in path.name else path) if to is None else to
    found = file if to is not None or data_dir is None else data_dir / file
    if found.exists():
        raise InputError(f"{found} is there already; remove it first, or name another with --to")
    found.absolute().parent.mkdir(parents=True, exist_ok=True)
    return found.absolute()
