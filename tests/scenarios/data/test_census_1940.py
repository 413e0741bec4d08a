"""The 1940 census, on a small file as an extract in csv format has it."""

import numpy as np
import pytest

from federation.contract.errors import InputError
from federation.features.feature_map import text_code
from scenarios.data.catalogue import load

HEADER = '"YEAR","SERIAL","PERNUM","SEX","AGE","MARST","CHBORN","SCHOOL","EMPSTAT","OCC","IND","WKSWORK1"\n'


def written(folder, body, header=HEADER):
    (folder / "census_1940.csv").write_text(header + body)
    return load("census_1940", data_dir=folder)


def test_persons_with_a_number_of_weeks_are_rows(tmp_path):
    body = (
        "1940,1,1,1,45,1,0,1,1,100,236,52\n"
        "1940,1,2,2,40,1,4,1,3,995,0,0\n"  # not applicable
        "1940,2,1,2,17,6,0,2,1,290,826,7\n"
        "1940,2,2,1,30,6,0,1,1,290,826,99\n"  # unknown
        "1940,3,1,1,30,6,0,1,1,290,826,\n"
    )
    table = written(tmp_path, body)
    assert table.columns == ("AGE", "SEX", "MARST", "CHBORN", "SCHOOL", "EMPSTAT", "OCC", "IND")
    assert table.labels.tolist() == [52.0, 7.0]
    assert (table.label_range, table.text, table.classes) == ((0.0, 52.0), tuple(range(1, 8)), ())
    rows = table.rows(np.arange(2))
    assert rows[:, 0].tolist() == [45.0, 17.0]
    codes = [["1", "1", "0", "1", "1", "100", "236"], ["2", "6", "0", "2", "1", "290", "826"]]
    np.testing.assert_array_equal(rows[:, 1:], [[text_code(text) for text in row] for row in codes])


def test_a_header_without_quotation_marks_will_do(tmp_path):
    assert len(written(tmp_path, "1940,1,1,1,45,1,0,1,1,100,236,52\n", HEADER.replace('"', ""))) == 1


@pytest.mark.parametrize(
    ("header", "body", "words"),
    [
        (
            HEADER.replace("WKSWORK1", "WKSWORK2"),
            "1940,1,1,1,45,1,0,1,1,100,236,52\n",
            "lacks the columns WKSWORK1; it",
        ),
        (HEADER, "1940,1,1,1,,1,0,1,1,100,236,52\n", "the AGE of a person is missing"),
        (HEADER, "1940,1,1,1,45,1,0,1,1,100,236,0\n", "has no row with a label"),
        (HEADER, "1940,1,1\n", "is not of the documented format"),
    ],
)
def test_another_format_is_refused(tmp_path, header, body, words):
    with pytest.raises(InputError, match=words):
        written(tmp_path, body, header)
