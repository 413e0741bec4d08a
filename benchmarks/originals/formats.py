"""Read the downloads of data sets, by their official names and packed or not, and convert them to the project's files.

In this order: tables and matrices in a folder of downloads; data sets of numbers; of numbers and categories, with an
indicator for each category; of texts; and files that scenarios read as they are.
"""

from __future__ import annotations

import bz2
import gzip
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow
from numpy.typing import NDArray
from pyarrow import csv
from scipy.sparse import csr_matrix
from sklearn.datasets import load_svmlight_file

from federation.contract.errors import InputError
from federation.numerics.rows import Integers
from scenarios.data.text_sets import URL_DAYS

Arrays = dict[str, NDArray[Any]]
_PACKED = {".gz": gzip.open, ".bz2": bz2.open}
_SHOWN = 160  # characters of what a library says


@dataclass(frozen=True)
class Downloads:
    """What lies in a folder and the folders in it.

    Everything raises `InputError`, which names the file, for one that is not there or of another format.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     _ = Path(folder, "labels.txt").write_text("1 walking\\n2 sitting\\n")
        ...     Downloads(Path(folder)).table("labels.txt", ["code", "name"], " ")["name"].to_pylist()
        ['walking', 'sitting']
    """

    folder: Path

    def path(self, name: str) -> Path:
        """The file of that name, which may begin with names of folders, or the same packed by gzip or bzip2."""
        for ending in ("", *_PACKED):
            if found := sorted(self.folder.rglob(name + ending), key=lambda path: (len(path.parts), path)):
                return found[0]
        raise InputError(
            f"there is no file {name} in {self.folder}; unpack the download there, and leave its files their names"
        )

    def open(self, name: str) -> IO[bytes]:
        """The bytes of a file, unpacked."""
        path = self.path(name)
        unpack: Any = _PACKED.get(path.suffix, open)
        try:
            return unpack(path, "rb")  # type: ignore[no-any-return]
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from error

    def table(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        separator: str = ",",
        *,
        numbers: Sequence[str] = (),
        skip: int = 0,
        rows: int | None = None,
    ) -> pyarrow.Table:
        """The cells of a text file, with the names of its first line or those of `columns`; the first `rows` of them.

        The columns `numbers` are real numbers, the others of `columns` texts, and those of a header whatever they seem.
        """
        block = csv.ReadOptions(column_names=columns, skip_rows=skip, use_threads=False)
        header = columns is None
        parse = csv.ParseOptions(delimiter=separator, quote_char='"' if header else False, newlines_in_values=header)
        types = dict.fromkeys(columns or (), pyarrow.string()) | dict.fromkeys(numbers, pyarrow.float64())
        convert = csv.ConvertOptions(column_types=types, strings_can_be_null=False)
        try:
            if rows is None:
                return csv.read_csv(self.path(name), block, parse, convert)
            batches, count = [], 0
            for batch in csv.open_csv(self.path(name), block, parse, convert):
                batches.append(batch)
                count += len(batch)
                if count >= rows:
                    break
            return pyarrow.Table.from_batches(batches).slice(0, rows)
        except (pyarrow.ArrowException, OSError) as error:
            raise self._refusal(name, error) from error

    def matrix(self, name: str) -> NDArray[np.float64]:
        """Lines of as many numbers each, with spaces between."""
        try:
            return np.loadtxt(self.open(name), ndmin=2)
        except (ValueError, OSError, EOFError) as error:
            raise self._refusal(name, error) from error

    def svmlight(self, name: str, columns: int) -> tuple[csr_matrix, NDArray[np.float64]]:
        """Sparse rows and their labels."""
        try:
            rows, labels = load_svmlight_file(self.open(name), n_features=columns, zero_based=False)
        except (ValueError, OSError, EOFError) as error:
            raise self._refusal(name, error) from error
        return rows, labels

    def _refusal(self, name: str, error: Exception) -> InputError:
        said = " ".join(str(error).split())[:_SHOWN]
        return InputError(f"{self.path(name)} is not of the official format ({said}); download it again")


def names_of(text: str) -> tuple[str, ...]:
    """The words of a text.

    Examples:
        >>> names_of("age sex")
        ('age', 'sex')
    """
    return tuple(text.split())


def numbers(table: pyarrow.Table, names: Sequence[str], path: Path, *, missing: bool = False) -> NDArray[np.float64]:
    """Columns of numbers of a table as float64 (n, len(names)), NaN for empty cells where they may be `missing`.

    Raises `InputError`, which names the file, for a column that is not there and for other cells.
    """
    found = np.empty((table.num_rows, len(names)))
    for i, name in enumerate(names):
        if name not in table.column_names:
            raise InputError(f"{path} has no column '{name}'; name the original file")
        found[:, i] = table.column(name).to_numpy()
    if not missing and np.isnan(found).any():
        row, column = np.argwhere(np.isnan(found))[0]
        raise InputError(f"{path}: '{names[column]}' of row {row} (counted from 0) is empty; download it again")
    return found


def texts(table: pyarrow.Table, name: str, path: Path) -> NDArray[np.str_]:
    """A column of a table as texts (n,), without spaces around them. Raises `InputError` where there is none."""
    if name not in table.column_names:
        raise InputError(f"{path} has no column '{name}'; name the original file")
    return np.array([str(cell).strip() for cell in table.column(name).to_pylist()])


def coded(values: NDArray[np.str_]) -> tuple[NDArray[np.str_], NDArray[np.uint8]]:
    """The different texts by alphabet, and each text's position among them."""
    known, codes = np.unique(values, return_inverse=True)
    return known, codes.astype(np.uint8)


def indicators(codes: Integers | NDArray[np.uint8], count: int) -> NDArray[np.uint8]:
    """A column (n, count) for each position: 1 where the code is that."""
    return np.asarray(codes[:, None] == np.arange(count), dtype=np.uint8)


_IMAGES, _LABELS = 2051, 2049  # what idx files of images and of labels begin with
_CTG = names_of("LB AC FM UC DL DS DP ASTV MSTV ALTV MLTV Width Min Max Nmax Nzeros Mode Mean Median Variance Tendency")
_COUNTED = ("AC", "FM", "UC", "DL", "DS", "DP", "DR")  # in an examination from second b to e
_PATTERNS = ["A", "B", "C", "D", "E", "AD", "DE", "LD", "FS", "SUSP"]
_HIGGS = names_of(
    "lepton_pT lepton_eta lepton_phi missing_energy_magnitude missing_energy_phi jet_1_pt jet_1_eta jet_1_phi "
    "jet_1_btag jet_2_pt jet_2_eta jet_2_phi jet_2_btag jet_3_pt jet_3_eta jet_3_phi jet_3_btag jet_4_pt "
    "jet_4_eta jet_4_phi jet_4_btag m_jj m_jjj m_lv m_jlv m_bb m_wbb m_wwbb"
)
_HIGGS_ROWS = 25_972  # any serve; as many as the scenarios were made for
_HOUSING = names_of(
    "longitude latitude housing_median_age total_rooms total_bedrooms population households median_income"
)
_ACOUSTIC_COLUMNS = 50


def har(found: Downloads) -> Arrays:
    """The folder UCI HAR Dataset: 561 features in lines of text, activities and subjects as numbers."""
    arrays: Arrays = {}
    for part in ("train", "test"):
        arrays[f"X_{part}"] = found.matrix(f"{part}/X_{part}.txt").astype(np.float32)
        for name in ("y", "subject"):
            arrays[f"{name}_{part}"] = found.matrix(f"{part}/{name}_{part}.txt")[:, 0].astype(np.uint8)
    for name, file in (("feature_names", "features.txt"), ("class_names", "activity_labels.txt")):
        arrays[name] = texts(found.table(file, ["code", "name"], " "), "name", found.path(file))
    arrays["class_names"] = np.array(["", *arrays["class_names"]])
    return arrays


def mnist(found: Downloads) -> Arrays:
    """The four idx files, packed or not."""
    arrays: Arrays = {}
    for part, file in (("train", "train"), ("test", "t10k")):
        images = _idx(found, f"{file}-images-idx3-ubyte", _IMAGES, 3)
        arrays[f"X_{part}"] = images.reshape(len(images), -1)
        arrays[f"y_{part}"] = _idx(found, f"{file}-labels-idx1-ubyte", _LABELS, 1)
    return arrays


def _idx(found: Downloads, name: str, magic: int, axes: int) -> NDArray[np.uint8]:
    """An idx file: whole numbers of four bytes, the largest first, for what it is and its shape; then bytes."""
    with found.open(name) as file:
        head = np.frombuffer(file.read(4 * (1 + axes)), ">i4")
        body = np.frombuffer(file.read(), np.uint8)
    if len(head) <= axes or head[0] != magic or len(body) != np.prod(head[1:]):
        raise InputError(f"{found.path(name)} is not of the official format (idx); download it again")
    return body.reshape(head[1:])


def ctg(found: Downloads) -> Arrays:
    """CTG.csv: the sheet "Raw Data" of CTG.xls, which counts per examination, or the repository's own, per second."""
    path = found.path("CTG.csv")
    table = found.table("CTG.csv", numbers=[*_CTG, "b", "e", "DR", "CLASS", "NSP"])
    kept = np.isfinite(numbers(table, ["LB", "NSP"], path, missing=True)).all(
        axis=1
    )  # the sheet has blank lines and sums
    columns = dict(zip(_CTG, numbers(table.filter(kept), _CTG, path).T, strict=True))
    classes, states = numbers(table.filter(kept), ["CLASS", "NSP"], path).astype(np.uint8).T
    arrays: Arrays = {}
    if {"b", "e", "DR"} <= {*table.column_names}:
        counts = numbers(table.filter(kept), ["b", "e", *_COUNTED], path)
        rates = counts[:, 2:] / (counts[:, 1:2] - counts[:, :1])
        columns |= dict(zip(_COUNTED, rates.T, strict=True))
        arrays["exam_counts"], arrays["exam_count_names"] = counts.astype(np.float32), np.array(["b", "e", *_COUNTED])
        arrays["X22"] = np.column_stack([*columns.values()]).astype(np.float32)
    arrays["X"] = np.column_stack([columns[name] for name in _CTG]).astype(np.float32)
    return arrays | {
        "y": states,
        "y_nsp": states,
        "y_class": classes,
        "feature_names": np.array(_CTG),
        "class_names": np.array(_PATTERNS),
        "nsp_names": np.array(["", "Normal", "Suspect", "Pathologic"]),
    }


def higgs(found: Downloads) -> Arrays:
    """The first rows of HIGGS.csv: the label and 28 numbers in every line, without a header."""
    names = ["signal", *_HIGGS]
    table = found.table("HIGGS.csv", names, numbers=names, rows=_HIGGS_ROWS)
    values = numbers(table, names, found.path("HIGGS.csv"))
    return {
        "X": values[:, 1:].astype(np.float32),
        "y": values[:, 0].astype(np.uint8),
        "feature_names": np.array(_HIGGS),
    }


def housing(found: Downloads) -> Arrays:
    """housing.csv, with a header."""
    path = found.path("housing.csv")
    table = found.table("housing.csv", numbers=[*_HOUSING, "median_house_value"])
    known, codes = coded(texts(table, "ocean_proximity", path))
    return {
        "X": numbers(table, _HOUSING, path, missing=True).astype(np.float32),
        "ocean_proximity": codes,
        "ocean_values": known,
        "y": numbers(table, ["median_house_value"], path)[:, 0].astype(np.float32),
        "feature_names": np.array(_HOUSING),
    }


def protein(found: Downloads) -> Arrays:
    """CASP.csv, with a header: RMSD, which is to be predicted, and F1 to F9."""
    names = [f"F{i}" for i in range(1, 10)]
    columns = ["RMSD", *names]
    table = found.table("CASP.csv", numbers=columns)
    values = numbers(table, columns, found.path("CASP.csv")).astype(np.float32)
    return {"X": values[:, 1:], "y": values[:, 0], "feature_names": np.array(names)}


def acoustic(found: Downloads) -> Arrays:
    """acoustic_scale and acoustic_scale.t in svmlight format, packed or not."""
    arrays: Arrays = {}
    for part, name in (("train", "acoustic_scale"), ("test", "acoustic_scale.t")):
        rows, labels = found.svmlight(name, _ACOUSTIC_COLUMNS)
        arrays[f"X_{part}"] = rows.toarray().astype(np.float32)
        arrays[f"y_{part}"] = labels.astype(np.uint8)
    return arrays


_ADULT = names_of(
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain "
    "capital-loss hours-per-week native-country income"
)
_ADULT_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_ADULT_TEXTS = tuple(name for name in _ADULT[:-1] if name not in _ADULT_NUMBERS)
_KDD = names_of(
    "duration protocol_type service flag src_bytes dst_bytes land wrong_fragment urgent hot num_failed_logins "
    "logged_in num_compromised root_shell su_attempted num_root num_file_creations num_shells num_access_files "
    "num_outbound_cmds is_host_login is_guest_login count srv_count serror_rate srv_serror_rate rerror_rate "
    "srv_rerror_rate same_srv_rate diff_srv_rate srv_diff_host_rate dst_host_count dst_host_srv_count "
    "dst_host_same_srv_rate dst_host_diff_srv_rate dst_host_same_src_port_rate dst_host_srv_diff_host_rate "
    "dst_host_serror_rate dst_host_srv_serror_rate dst_host_rerror_rate dst_host_srv_rerror_rate attack"
)
_KDD_TEXTS = {"protocol_type": "protocols", "service": "services", "flag": "flags"}  # and what their values are called
_KDD_NUMBERS = tuple(name for name in _KDD[:-1] if name not in _KDD_TEXTS)
_FAMILIES = {
    "normal": "normal",
    "dos": "apache2 back land mailbomb neptune pod processtable smurf teardrop udpstorm",
    "probe": "ipsweep mscan nmap portsweep saint satan",
    "r2l": "ftp_write guess_passwd imap multihop named phf sendmail snmpgetattack snmpguess spy warezclient "
    "warezmaster worm xlock xsnoop",
    "u2r": "buffer_overflow httptunnel loadmodule perl ps rootkit sqlattack xterm",
}
_FAMILY = {attack: family for family, attacks in _FAMILIES.items() for attack in attacks.split()}
_WEEKS, _WEEKS_COLUMNS = 39, 42  # of the records of Census-Income (KDD), counted from 0
_WEEKS_TEXTS = (12, 7, 6, 15, 2, 3)  # sex, marital status, enrolment, employment, industry and occupation codes
_WEEKS_RANGE = (0.0, 52.0)


def adult(found: Downloads) -> Arrays:
    """adult.data and adult.test, whose first line is a remark and whose labels end with a point."""
    files = {"adult.data": 0, "adult.test": 1}  # and how many lines come before the first record
    tables = [found.table(name, _ADULT, numbers=_ADULT_NUMBERS, skip=skip) for name, skip in files.items()]
    table, path, train = pyarrow.concat_tables(tables), found.path("adult.data"), tables[0].num_rows
    numeric = numbers(table, _ADULT_NUMBERS, path)
    arrays: Arrays = {}
    categories, names, parts = [], [*_ADULT_NUMBERS], list[NDArray[Any]]([numeric])
    for name in _ADULT_TEXTS:
        known, codes = coded(texts(table, name, path))
        arrays[f"values_{name.replace('-', '_')}"] = known
        categories.append(codes)
        parts.append(indicators(codes, len(known)))
        names += [f"{name}={value}" for value in known]
    rows = np.hstack(parts).astype(np.float32)
    rich = np.char.startswith(texts(table, "income", path), ">").astype(np.uint8)
    return arrays | {
        "numeric": numeric.astype(np.int32),
        "numeric_names": np.array(_ADULT_NUMBERS),
        "categorical": np.column_stack(categories),
        "categorical_names": np.array(_ADULT_TEXTS),
        "X": rows,
        "y": rich,
        "X_train": rows[:train],
        "y_train": rich[:train],
        "X_test": rows[train:],
        "y_test": rich[train:],
        "feature_names": np.array(names),
    }


def kdd99(found: Downloads) -> Arrays:
    """kddcup.data_10_percent and corrected, whose attacks end with a point."""
    files = {"train": "kddcup.data_10_percent", "test": "corrected"}
    tables = {part: found.table(name, _KDD, numbers=_KDD_NUMBERS) for part, name in files.items()}
    arrays: Arrays = {}
    values = {
        part: {name: texts(table, name, found.path(files[part])) for name in (*_KDD_TEXTS, "attack")}
        for part, table in tables.items()
    }
    attacks = {part: np.char.rstrip(of["attack"], ".") for part, of in values.items()}
    known = {name: np.unique(np.concatenate([of[name] for of in values.values()])) for name in _KDD_TEXTS}
    kinds = np.unique(np.concatenate([*attacks.values()]))
    for part, table in tables.items():
        codes = [np.searchsorted(known[name], values[part][name]) for name in _KDD_TEXTS]
        arrays[f"numeric_{part}"] = numbers(table, _KDD_NUMBERS, found.path(files[part])).astype(np.float32)
        arrays[f"categorical_{part}"] = np.column_stack(codes).astype(np.uint8)
        arrays[f"onehot_{part}"] = np.hstack(
            [indicators(of, len(each)) for of, each in zip(codes, known.values(), strict=True)]
        )
        arrays[f"attack_{part}"] = np.searchsorted(kinds, attacks[part]).astype(np.uint8)
        arrays[f"y_{part}"] = (attacks[part] != "normal").astype(np.uint8)
    return arrays | {
        "numeric_names": np.array(_KDD_NUMBERS),
        "categorical_names": np.array([*_KDD_TEXTS]),
        "onehot_names": np.array([f"{name}={value}" for name, of in known.items() for value in of]),
        "attack_names": kinds,
        "attack_family": np.array([_FAMILY.get(str(kind), "other") for kind in kinds]),
        **{plural: known[name] for name, plural in _KDD_TEXTS.items()},
    }


def census_weeks(found: Downloads) -> Arrays:
    """census-income.test: a constant, the age standardised by its own rows, and indicators of six categories."""
    names = [f"c{i}" for i in range(_WEEKS_COLUMNS)]
    measured = [names[0], names[_WEEKS]]
    table, path = found.table("census-income.test", names, numbers=measured), found.path("census-income.test")
    age, weeks = numbers(table, measured, path).T
    parts = [np.ones((len(age), 1)), ((age - age.mean()) / age.std())[:, None]]
    for column in _WEEKS_TEXTS:
        known, codes = coded(texts(table, names[column], path))
        parts.append(indicators(codes, len(known)))
    lo, hi = _WEEKS_RANGE
    return {
        "X": np.hstack(parts).astype(np.float32),
        "y": weeks.astype(np.float32),
        "lo": np.array(lo),
        "hi": np.array(hi),
    }


VIDEOS = (
    "Youtube01-Psy.csv", "Youtube02-KatyPerry.csv", "Youtube03-LMFAO.csv", "Youtube04-Eminem.csv",
    "Youtube05-Shakira.csv",
)  # fmt: skip
_SENTIMENTS = {"-1": "negative", "0": "neutral", "1": "positive"}
_LINES_OF_A_TWEET = 3


def youtube_spam(found: Downloads) -> pyarrow.Table:
    """The five files of comments, with a header each: the text, whose video it is below, and ham or spam."""
    content, kinds, videos = [], [], []
    for name in VIDEOS:
        table, path = found.table(name), found.path(name)
        content += texts(table, "CONTENT", path).tolist()
        kinds += texts(table, "CLASS", path).tolist()
        videos += [name.partition("-")[2].removesuffix(".csv")] * table.num_rows
    if not {*kinds} <= {"0", "1"}:
        raise InputError(f"{found.path(VIDEOS[0])}: CLASS must be 0 or 1; download it again")
    return pyarrow.table({"content": content, "video": videos, "class": [["ham", "spam"][int(k)] for k in kinds]})


def tweets(found: Downloads) -> pyarrow.Table:
    """train.raw and test.raw: three lines a tweet, its text with $T$ for the target, the target, and -1, 0 or 1."""
    rows = []
    for part in ("train", "test"):
        with found.open(f"{part}.raw") as file:
            lines = file.read().decode("utf-8", errors="replace").splitlines()
        labels = [line.strip() for line in lines[2::_LINES_OF_A_TWEET]]
        if not lines or len(lines) % _LINES_OF_A_TWEET or not {*labels} <= {*_SENTIMENTS}:
            raise InputError(
                f"{found.path(f'{part}.raw')} must have three lines a tweet, the last of them -1, 0 or 1; download it "
                "again"
            )
        for text, target, label in zip(lines[::_LINES_OF_A_TWEET], lines[1::_LINES_OF_A_TWEET], labels, strict=True):
            rows.append((text.replace("$T$", target.strip()), _SENTIMENTS[label], part))
    return pyarrow.table(dict(zip(("text", "sentiment", "part"), map(list, zip(*rows, strict=True)), strict=True)))


def copied_days(found: Downloads, to: Path) -> None:
    """The days of URLs that scenarios use, in a folder of their own."""
    to.mkdir(parents=True, exist_ok=True)
    for path in [found.path(f"Day{day}.svm") for day in range(URL_DAYS)]:
        shutil.copyfile(path, to / path.name)


def copied(name: str, found: Downloads, to: Path) -> None:
    """A file as it is."""
    shutil.copyfile(found.path(name), to)
