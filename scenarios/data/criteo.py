"""The Criteo Sponsored Search Conversion Log: how much a click sold for, as Brahmbhatt et al. 2023, Appendix K."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from scenarios.data.data_sets import Filed
from scenarios.data.large_csv import read_large
from scenarios.data.tables import Table

COLUMNS = (
    "Sale", "SalesAmountInEuro", "time_delay_for_conversion", "click_timestamp", "nb_clicks_1week", "product_price",
    "product_age_group", "device_type", "audience_id", "product_gender", "product_brand", "product_category1",
    "product_category2", "product_category3", "product_category4", "product_category5", "product_category6",
    "product_category7", "product_country", "product_id", "product_title", "partner_id", "user_id",
)  # fmt: skip
_LABEL = "SalesAmountInEuro"
_NUMBERS = ("time_delay_for_conversion", "nb_clicks_1week", "product_price")
_TEXTS = ("product_age_group", "product_category1", "product_category7", "product_country", "product_gender")


def _criteo(path: Path) -> Table:
    """The clicks that led to a sale: -1 (no sale) is no label, and nothing else below 0 is one either."""
    sheet = read_large(
        path, (_LABEL, *_NUMBERS), _TEXTS, lambda numbers: numbers[_LABEL] >= 0, separator="\t", names=COLUMNS
    )
    blocks, columns = [], []
    for name in _NUMBERS:
        values = sheet.numbers[name]
        # Imputed by a constant and an indicator of its own: a mean would be taken from everybody's rows.
        missing = ~(values >= 0)
        blocks.append(np.column_stack([np.where(missing, 0.0, values), missing]))
        columns += [name, f"{name} is missing"]
    text = tuple(range(len(columns), len(columns) + len(_TEXTS)))
    return Table("criteo_sscl", (*columns, *_TEXTS), (), sheet.numbers[_LABEL], (*blocks, sheet.texts), text)


CRITEO = Filed(
    "what clicks on advertisements sold for, in euro: 1732721 rows, 11 columns, 5 of them texts; missing numbers are 0 "
    "with an indicator; declare data.range",
    _criteo,
    "CriteoSearchData",
    "23 columns separated by tabs, without a header, as in the original: Sale, SalesAmountInEuro, ..., user_id",
    "'Criteo Sponsored Search Conversion Log Dataset' of Criteo AI Lab (Tallis and Yadav 2018)",
    regression=True,
)
