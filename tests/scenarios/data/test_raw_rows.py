"""Rows of raw features: columns by name, what may be missing, and what is said where something is."""

import numpy as np
import pyarrow as pa
import pytest

from federation.contract.errors import InputError
from federation.features.feature_map import text_code
from scenarios.data.row_storage import complete, features_of, require_there
from scenarios.data.sheets import NO_TEXT, Sheet


@pytest.fixture
def sheet(tmp_path):
    return Sheet(tmp_path / "own.parquet", pa.table({"a": [1, 2, None], "t": ["u", None, "v"], "b": [0.5, 1.5, 2.5]}))


def test_columns_are_found_by_name_and_unused_ones_need_not_be_there(sheet):
    rows = features_of(sheet, ("b", "gone", "t"), (2,), True, unused=(1,))
    np.testing.assert_array_equal(rows, [[0.5, 0, text_code("u")], [1.5, 0, NO_TEXT], [2.5, 0, text_code("v")]])
    assert require_there(sheet, ("b", "gone", "t"), (1,)) == ["b", "t"]


def test_missing_cells_are_refused_unless_they_are_allowed(sheet):
    assert np.isnan(features_of(sheet, ("a", "b"), (), True)).tolist() == [[False] * 2, [False] * 2, [True, False]]
    with pytest.raises(
        InputError, match=r"own\.parquet, row 1 .*column 't' is missing; .* by column: t 1, a 1; correct"
    ):
        features_of(sheet, ("t", "a"), (0,), False)


def test_all_columns_that_are_not_there_are_named(sheet):
    with pytest.raises(InputError, match="lacks 2 of the 3 columns that are needed, x, y; it has a, t, b"):
        require_there(sheet, ("x", "b", "y"))


def test_rows_without_missing_cells_come_back_as_they_are(sheet):
    rows = np.ones((3, 2))
    assert complete(rows, sheet, ("a", "b")) is rows
