"""The United States census of 1940: weeks worked in 1939, as Brahmbhatt et al. 2023, Appendix K."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from federation.contract.errors import InputError
from scenarios.data.data_sets import Filed
from scenarios.data.large_csv import read_large
from scenarios.data.tables import Table

_LABEL, _AGE = "WKSWORK1", "AGE"
_TEXTS = ("SEX", "MARST", "CHBORN", "SCHOOL", "EMPSTAT", "OCC", "IND")
_WEEKS_RANGE = (0.0, 52.0)


def _census_1940(path: Path) -> Table:
    """The persons with 1 to 52 weeks: 0 stands for not applicable and missing, too, and larger codes for unknown."""
    sheet = read_large(
        path, (_LABEL, _AGE), _TEXTS, lambda numbers: (numbers[_LABEL] >= 1) & (numbers[_LABEL] <= _WEEKS_RANGE[1])
    )
    ages = sheet.numbers[_AGE]
    if not np.isfinite(ages).all():
        raise InputError(f"{path}: the {_AGE} of a person is missing; correct it or remove the row")
    text = tuple(range(1, 1 + len(_TEXTS)))
    return Table(
        "census_1940",
        (_AGE, *_TEXTS),
        (),
        sheet.numbers[_LABEL],
        (ages[:, None], sheet.texts),
        text,
        label_range=_WEEKS_RANGE,
    )


CENSUS_1940 = Filed(
    "weeks worked in 1939, 1 to 52 of a range from 0: 50582693 rows of the full count, 8 columns, 7 of them texts",
    _census_1940,
    "census_1940.csv",
    f"an extract in csv format, with a header, of the persons' {_LABEL}, {_AGE}, {', '.join(_TEXTS)} as codes",
    "IPUMS USA (Ruggles et al.), the full count or a sample of 1940",
    regression=True,
    label_range=_WEEKS_RANGE,
)
