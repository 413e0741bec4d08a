"""Two large text files of Brahmbhatt et al. 2023, Appendix K: the census of 1940 and the Criteo conversion log."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from federation.contract.errors import InputError
from scenarios.data.data_sets import DataSet
from scenarios.data.sheets import read_large
from scenarios.data.tables import Table

_WEEKS, _AGE = "WKSWORK1", "AGE"
_CENSUS_TEXTS = ("SEX", "MARST", "CHBORN", "SCHOOL", "EMPSTAT", "OCC", "IND")
_WEEKS_RANGE = (0.0, 52.0)
CRITEO_COLUMNS = (
    "Sale", "SalesAmountInEuro", "time_delay_for_conversion", "click_timestamp", "nb_clicks_1week", "product_price",
    "product_age_group", "device_type", "audience_id", "product_gender", "product_brand", "product_category1",
    "product_category2", "product_category3", "product_category4", "product_category5", "product_category6",
    "product_category7", "product_country", "product_id", "product_title", "partner_id", "user_id",
)  # fmt: skip
_AMOUNT = "SalesAmountInEuro"
_NUMBERS = ("time_delay_for_conversion", "nb_clicks_1week", "product_price")
_TEXTS = ("product_age_group", "product_category1", "product_category7", "product_country", "product_gender")


def _census_1940(known: DataSet, path: Path) -> Table:
    """The persons with 1 to 52 weeks: 0 stands for not applicable and missing, too, and larger codes for unknown."""
    from pyarrow.dataset import field

    worked = (field(_WEEKS) >= 1) & (field(_WEEKS) <= _WEEKS_RANGE[1])
    numbers, texts = read_large(path, (_WEEKS, _AGE), _CENSUS_TEXTS, worked)
    if not np.isfinite(numbers[_AGE]).all():
        raise InputError(f"{path}: the {_AGE} of a person is missing; correct it or remove the row")
    blocks, text = (numbers[_AGE][:, None], texts), tuple(range(1, 1 + len(_CENSUS_TEXTS)))
    return Table(known.name, (_AGE, *_CENSUS_TEXTS), (), numbers[_WEEKS], blocks, text, label_range=known.label_range)


def _criteo(known: DataSet, path: Path) -> Table:
    """The clicks that led to a sale: -1 (no sale) is no label, and nothing else below 0 is one either."""
    from pyarrow.dataset import field

    sold = field(_AMOUNT) >= 0
    numbers, texts = read_large(path, (_AMOUNT, *_NUMBERS), _TEXTS, sold, separator="\t", names=CRITEO_COLUMNS)
    blocks, columns = [], []
    for name in _NUMBERS:
        # Imputed by a constant and an indicator of its own: a mean would be taken from everybody's rows.
        missing = ~(numbers[name] >= 0)
        blocks.append(np.column_stack([np.where(missing, 0.0, numbers[name]), missing]))
        columns += [name, f"{name} is missing"]
    text = tuple(range(len(columns), len(columns) + len(_TEXTS)))
    return Table(known.name, (*columns, *_TEXTS), (), numbers[_AMOUNT], (*blocks, texts), text)


CENSUS_1940 = DataSet(
    "census_1940",
    "weeks worked in 1939, 1 to 52 of a range from 0: 50582693 rows of the full count, 8 columns, 7 of them texts",
    _census_1940,
    "census_1940.csv",
    f"an extract in csv format, with a header, of the persons' {_WEEKS}, {_AGE}, {', '.join(_CENSUS_TEXTS)} as codes",
    "IPUMS USA (Ruggles et al.), the full count or a sample of 1940",
    url="https://usa.ipums.org",
    licence="the terms of use of IPUMS: for research and teaching, cited, not handed on",
    regression=True,
    label_range=_WEEKS_RANGE,
)
CRITEO = DataSet(
    "criteo_sscl",
    "what clicks on advertisements sold for, in euro: 1732721 rows, 11 columns, 5 of them texts; missing numbers are 0 "
    "with an indicator; declare data.range",
    _criteo,
    "CriteoSearchData",
    "23 columns separated by tabs, without a header, as in the original: Sale, SalesAmountInEuro, ..., user_id",
    "'Criteo Sponsored Search Conversion Log Dataset' of Criteo AI Lab (Tallis and Yadav 2018)",
    url="https://ailab.criteo.com/criteo-sponsored-search-conversion-log-dataset",
    licence="the terms of Criteo, to be accepted there",
    regression=True,
)
