"""Make the file of a data set from the downloads of its owner.

    python -m benchmarks.originals NAME                 print which downloads the data set needs
    python -m benchmarks.originals NAME --from FOLDER   make the file in the data directory

Nothing is downloaded. `federation data NAME` prints where the original is, and its licence.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow
from pyarrow.parquet import write_table

from benchmarks.originals import formats
from benchmarks.originals.formats import Arrays, Downloads
from federation.contract.errors import FederationError, InputError, nearest_name, writing
from scenarios.data.catalogue import directory_of, entry, names
from scenarios.data.tables import DataSet


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
                write_table(made, path)
            os.replace(path, to)


ORIGINALS = {
    "adult": Original("adult.data and adult.test", formats.adult),
    "ctg": Original(
        "CTG.csv",
        formats.ctg,
        note='CTG.xls is of a spreadsheet program: save its sheet "Raw Data" as CTG.csv first',
    ),
    "har": Original("the folder 'UCI HAR Dataset' of UCI HAR Dataset.zip, unpacked", formats.har),
    "higgs": Original("HIGGS.csv or HIGGS.csv.gz", formats.higgs, note="its first 25972 rows are taken"),
    "kdd99": Original("kddcup.data_10_percent and corrected, packed (.gz) or not", formats.kdd99),
    "mnist": Original(
        "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, packed "
        "(.gz) or not",
        formats.mnist,
    ),
    "housing": Original("housing.csv", formats.housing),
    "protein": Original("CASP.csv", formats.protein),
    "census_weeks": Original("census-income.test, packed (.gz) or not", formats.census_weeks),
    "acoustic": Original("acoustic_scale and acoustic_scale.t, packed (.bz2) or not", formats.acoustic),
    "malicious_url": Original(
        "Day0.svm to Day19.svm of url_svmlight.tar.gz, unpacked",
        copy=formats.copied_days,
        note="they are read as they are, and copied",
    ),
    "youtube_spam": Original(", ".join(formats.VIDEOS), formats.youtube_spam),
    "tweets": Original("train.raw and test.raw", formats.tweets),
    "census_1940": Original(
        "census_1940.csv",
        copy=partial(formats.copied, "census_1940.csv"),
        note="an extract has a name of its own, such as usa_00001.csv: unpack it, and rename it; it is read as it is, "
        "and copied",
    ),
    "criteo_sscl": Original(
        "CriteoSearchData",
        copy=partial(formats.copied, "CriteoSearchData"),
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


def main() -> None:
    """Print what a data set's file is made from, or make the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="a data set; federation data lists them")
    parser.add_argument("--from", dest="source", type=Path, metavar="FOLDER", help="folder of the unpacked downloads")
    parser.add_argument("--to", type=Path, metavar="FILE", help="file to write; default: in the data directory")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="folder of data files; default: FEDERATION_DATA")
    arguments = parser.parse_args()
    try:
        print(*make(arguments.name, arguments.source, arguments.to, directory_of(arguments.data_dir)), sep="\n")
    except FederationError as error:
        raise SystemExit(str(error)) from None


def make(name: str, source: Path | None, to: Path | None, data_dir: Path | None) -> list[str]:
    """Make the file of a data set from the downloads in `source`, and return what to print.

    Without a `source` nothing is made; the lines name the downloads. Raises `InputError`.
    """
    known, how = original(name)
    if source is None:
        if to is not None:
            raise InputError("--to needs --from, the folder of the downloads")
        return [f"downloads: {how.files}", *([f"note: {how.note}"] if how.note else [])]
    if not source.is_dir():
        raise InputError(f"--from: there is no folder {source}; name the folder with {how.files}")
    path = target(known, to, data_dir)
    with writing(path, "name another with --to"):
        how.save(source, path)
    if how.make is None:  # a copy is checked when it is read, which may take long
        return [f"wrote {path}", f"licence: {known.licence}"]
    table = known.read(path, hashes=[] if known.hashed is None else [known.hashed])
    return [f"wrote {path}: {len(table)} rows", f"licence: {known.licence}"]


if __name__ == "__main__":
    main()
