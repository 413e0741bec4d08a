"""Texts and sparse rows of the catalogue: their labels, groups and splits, and that they must be hashed.

The 1940 census and the sponsored search log, on small files of the originals' formats.
"""

import numpy as np
import pyarrow
import pytest
from pyarrow.parquet import write_table
from support.refusals import refused

from aggregator.trial.feature_fitting import fit
from federation.features.feature_map import text_code
from scenarios.data.catalogue import entry, load
from scenarios.data.text_sets import CRITEO_COLUMNS


def days(folder, *numbers, labels=("+1", "-1")):
    (folder / "malicious_url").mkdir()
    for day in numbers:
        lines = [f"{label} 4:0.5 {day + 3000000}:1\n" for label in labels]
        (folder / "malicious_url" / f"Day{day}.svm").write_text("".join(lines))


def test_urls_of_the_first_ten_days_are_for_training(tmp_path):
    days(tmp_path, 9, 10, 0)
    found = load("malicious_url", data_dir=tmp_path, hashes=[6])
    assert found.classes == ("benign", "malicious")
    assert found.labels.tolist() == [1, 0] * 3
    assert found.groups["day"].tolist() == [0, 0, 9, 9, 10, 10]
    assert [part.tolist() for part in found.official] == [[0, 1, 2, 3], [4, 5]]
    for name, numbers, labels, words in (("late", (10, 11), ("+1", "-1"), r"0.*9"), ("own", (0, 10), "12", "Day0")):
        (tmp_path / name).mkdir()
        days(tmp_path / name, *numbers, labels=labels)
        refused(words, load, "malicious_url", data_dir=tmp_path / name, hashes=[6])


def test_they_must_be_hashed_and_columns_of_numbers_are_not(tmp_path):
    days(tmp_path, 0)
    table = pyarrow.table({"content": ["a b"], "text": ["a b"]})
    for file in ("youtube_spam.parquet", "tweets.parquet"):
        write_table(table, tmp_path / file)
    for name, stage in (
        ("malicious_url", r"{hash: 12}"),
        ("youtube_spam", r"{hash: {column: content, bits: 12}}"),
        ("tweets", r"{hash: {column: text, bits: 12}}"),
    ):
        refused(f"{stage}", load, name, data_dir=tmp_path)
        assert entry(name).hashed.stage == stage
    refused(r"digits.*DIMENSIONS", load, "digits", hashes=[6])


def test_comments_may_be_dealt_by_video(tmp_path):
    table = pyarrow.table({"content": ["one two", "two"], "video": ["a", "b"], "class": ["spam", "ham"]})
    write_table(table, tmp_path / "youtube_spam.parquet")
    found = load("youtube_spam", data_dir=tmp_path, hashes=[{"column": "content", "bits": 4}])
    assert (found.labels.tolist(), found.groups["video"].tolist(), found.official) == ([1, 0], ["a", "b"], None)
    assert np.abs(found.rows(np.arange(2))).sum(axis=1).tolist() == [2, 1]


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


PERSON = "1940,1,1,1,45,1,0,1,1,100,236,52\n"


@pytest.mark.parametrize(
    ("header", "body", "words"),
    [
        (HEADER.replace("WKSWORK1", "WKSWORK2"), PERSON, "WKSWORK1"),
        (HEADER, PERSON.replace("45", ""), "AGE"),
        (HEADER, PERSON.replace("52", "0"), None),
        (HEADER, "1940,1,1\n", None),
    ],
)
def test_another_format_is_refused_but_a_header_without_quotation_marks_will_do(tmp_path, header, body, words):
    assert len(written(tmp_path, PERSON, HEADER.replace('"', ""))) == 1
    refused(words, written, tmp_path, body, header)


AGE, GENDER, COUNTRY = "4C90FD52FC53D2C1C205844CB69575AB", "FF8CFA5D1C4FD3EFDDDBAD9B3BC3A1A9", "E88C6C0B0F9A1F1B"


def line(sale, amount, delay, clicks, price, age=AGE, category=-1):
    cells = dict.fromkeys(CRITEO_COLUMNS, "-1")
    cells |= {
        "Sale": sale, "SalesAmountInEuro": amount, "time_delay_for_conversion": delay, "nb_clicks_1week": clicks,
        "click_timestamp": 1596439471, "product_price": price, "product_age_group": age, "product_gender": GENDER,
        "product_country": COUNTRY, "product_category1": category, "product_title": "AB12 CD34 \"E",
    }  # fmt: skip
    return "\t".join(str(cells[name]) for name in CRITEO_COLUMNS) + "\n"


def written_log(folder, *lines):
    (folder / "CriteoSearchData").write_text("".join(lines))
    return load("criteo_sscl", data_dir=folder, label_range=(0, 400), outside="clip")


def test_only_sales_are_rows_and_missing_numbers_have_an_indicator(tmp_path):
    table = written_log(
        tmp_path,
        line(1, 53.5, 1000, 12, 60.0),
        line(0, -1, -1, 3, 0.0),
        line(1, 1000.0, 0, -1, -1, age=-1, category="C1"),
        line(1, 0, 5, 0, 1.5),
    )
    assert len(CRITEO_COLUMNS) == 23
    assert table.labels.tolist() == [53.5, 400.0, 0.0]
    assert table.label_range == (0.0, 400.0)
    assert table.columns == (
        "time_delay_for_conversion", "time_delay_for_conversion is missing", "nb_clicks_1week",
        "nb_clicks_1week is missing", "product_price", "product_price is missing", "product_age_group",
        "product_category1", "product_category7", "product_country", "product_gender",
    )  # fmt: skip
    assert table.text == (6, 7, 8, 9, 10)
    rows = table.rows(np.arange(3))
    np.testing.assert_array_equal(rows[:, :6], [[1000, 0, 12, 0, 60, 0], [0, 0, 0, 1, 0, 1], [5, 0, 0, 0, 1.5, 0]])
    absent, age = text_code("-1"), text_code(AGE)
    assert rows[:, 6].tolist() == [age, absent, age]
    assert rows[:, 7].tolist() == [absent, text_code("C1"), absent]
    assert set(rows[:, 8]) == {absent}
    assert set(rows[:, 9]) == {text_code(COUNTRY)}
    assert fit(["standardise", "constant"], rows, table.text).dimension == 6 + 2 + 2 + 1  # three columns have one text


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([line(1, 5, 1, 1, 1).rpartition("\t")[0] + "\n"], "23"),
        (["\t".join(CRITEO_COLUMNS) + "\n"], None),
        ([line(0, -1, -1, 1, 1)], None),
    ],
)
def test_another_format_of_the_log_is_refused(tmp_path, lines, words):
    refused(words, written_log, tmp_path, *lines)
