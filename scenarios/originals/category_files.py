"""Originals of numbers and categories: census records and network connections, with an indicator for each category."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenarios.originals.downloads import Arrays, Downloads, coded, indicators, names_of, numbers, texts

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
    import pyarrow

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
