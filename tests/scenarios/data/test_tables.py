"""Tables: compact blocks, label codes, declared classes.

A data set by name: what reads it, with what, and how a file of another content is refused.
"""

import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import refused

from federation.features.feature_map import FeatureMap
from federation.features.steps import Affine
from scenarios.data.tables import CodedTexts, DataSet, Table, describe, encode_labels

PIXELS = np.arange(8, dtype=np.uint8).reshape(4, 2)
SHARES = np.array([[0.1], [0.2], [0.3], [0.4]], dtype=np.float32)
LABELS = np.array([0, 1, 1, 2])


def table(**changes) -> Table:
    parts = {"name": "toy", "columns": ("a", "b", "c"), "classes": ("low", "mid", "high"), "labels": LABELS}
    return Table(**parts | {"blocks": (PIXELS, SHARES)} | changes)


def test_rows_are_the_blocks_side_by_side_as_float64():
    rows = table().rows(np.array([3, 0, 3]))
    assert rows.dtype == np.float64
    np.testing.assert_array_equal(rows, np.hstack([PIXELS, SHARES.astype(float)])[[3, 0, 3]])
    assert table().rows(np.array([], dtype=int)).shape == (0, 3)
    assert table().blocks[0].dtype == np.uint8


def test_one_column_of_any_block_and_those_of_texts_with_missing_cells_and_unknown_ones_are_refused(monkeypatch):
    monkeypatch.setattr("scenarios.data.tables._ROWS_READ", 2)  # read in pieces
    for name, values in {"a": [0, 2, 4, 6], "b": [1, 3, 5, 7], "c": [0.1, 0.2, 0.3, 0.4]}.items():
        found = table().column(name, "data.auxiliary")
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, values, rtol=1e-6)
    holed = table(blocks=(np.array([[1.0, 2.0, 3.0], [1.0, np.nan, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]),))
    refused(r"'b'.*toy", table(text=(1,)).column, "b", "key")
    refused(r"key.*toy.*'d'", table().column, "d", "key")
    refused(r"'b'.*toy.*1", holed.column, "b", "key")
    assert holed.column("c", "key").tolist() == [3.0] * 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"columns": ("a", "b")}, "toy"),
        ({"labels": LABELS[:3]}, "toy"),
        ({"groups": {"g": np.arange(5)}}, "toy"),
        ({"blocks": (PIXELS, SHARES[:3])}, "toy"),
        ({"columns": (), "blocks": ()}, "toy"),
        ({"classes": (), "labels": np.array([0, 1, 2, 3])}, r"float64.*int64"),
        ({"classes": (), "labels": np.array([0.0, np.nan, 2, 3])}, r"1.*0"),
        ({"classes": (), "labels": np.array([0.0, 1, np.inf, 3])}, r"2.*0"),
        ({"classes": (), "labels": np.array([-1.0, 1, 2, 3]), "label_range": (0.0, 3.0)}, r"0.*3"),
        ({"label_range": (0.0, 1.0)}, None),
    ],
)
def test_parts_that_do_not_belong_together_and_what_is_no_real_label_are_refused(changes, words):
    refused(words, table, **changes)


def test_declared_classes_recode_the_labels_and_are_checked():
    declared = table().with_classes(["high", "none", "low", "mid"])
    assert declared.classes == ("high", "none", "low", "mid")
    np.testing.assert_array_equal(declared.labels, [2, 3, 3, 0])
    np.testing.assert_array_equal(declared.with_classes(["low", "mid", "high"]).labels, LABELS)
    spelled = table(classes=("1.0", "2.0", "x"))
    np.testing.assert_array_equal(spelled.with_classes(["x", "2", "1"]).labels, [2, 1, 1, 0])
    for made, classes, words in (
        (table(), ["low", "mid", "hihg"], r"high.*hihg"),
        (table(), ["low"], None),
        (table(), ["low", "low", "mid", "high"], None),
        (spelled, ["1", "1.0", "2", "x"], None),
    ):
        refused(words, made.with_classes, classes)


def test_classes_are_sorted_by_value_and_then_by_alphabet_and_equal_numbers_are_one_class():
    classes, codes = encode_labels(np.array(["10", "b", "9", "a", "10", "-1"]))
    assert classes == ("-1", "9", "10", "a", "b")
    np.testing.assert_array_equal(codes, [2, 4, 1, 3, 2, 0])
    classes, codes = encode_labels(np.array(["1.0", "+2", "1", "02", "2e0"]))
    assert classes == ("1", "+2")  # the first of the shortest spellings
    np.testing.assert_array_equal(codes, [0, 1, 0, 1, 1])
    assert encode_labels(np.array([2.0, 10.0, 0.5]))[0] == ("0.5", "2", "10")
    assert encode_labels(np.array([True, False]))[0] == ("False", "True")
    identifiers = ("9007199254740992", "9007199254740993")  # the same as floats
    assert encode_labels(np.array(identifiers))[0] == identifiers
    assert encode_labels(np.array(["1_0", "10"]))[0] == ("10", "1_0")
    assert encode_labels(np.array(["nan", "inf", "1", "NaN", "1e99999999999999999999"]))[0][0] == "1"


@settings(derandomize=True)
@given(st.lists(st.text(max_size=3) | st.integers(-20, 20).map(str), min_size=1))
def test_codes_point_at_their_own_class(labels):
    labels = [label.rstrip("\0") for label in labels]  # numpy texts end at trailing zero characters
    classes, codes = encode_labels(np.array(labels))
    spelled = [classes[code] for code in codes]
    assert all(a == b or Decimal(a) == Decimal(b) for a, b in zip(spelled, labels, strict=True))
    assert len(set(classes)) == len(classes)


def real(**changes) -> Table:
    return table(**{"classes": (), "labels": np.array([0.5, 2.0, -1.0, 3.0]), **changes})


def test_a_description_says_how_the_data_was_read_and_real_labels_by_their_range_only():
    assert repr(real()) == "Table('toy': 4 rows, 3 columns, real labels)"
    assert describe(real(label_range=(-1.0, 40.0))) == "toy: 4 rows, 3 columns, labels from -1 to 40"
    table = Table("t.csv", ("a", "b"), ("no", "yes"), np.array([0, 1, 1]), (np.zeros((3, 2)),), (1,))
    assert describe(table) == "t.csv: 3 rows, 2 columns (text: b), classes no 1, yes 2"
    holed = Table("h", ("a", "b"), ("p", "q"), np.array([0, 1]), (np.array([[1.0, np.nan], [np.nan, np.nan]]),))
    assert describe(holed) == "h: 2 rows, 2 columns, 3 missing cells, classes p 1, q 1"
    many = Table("m", ("a",), tuple(map(str, range(10))), np.arange(10), (np.zeros((10, 1)),))
    assert describe(many) == ("m: 10 rows, 1 columns, classes 0 1, 1 1, 2 1, 3 1, 4 1, 5 1, 6 1, 7 1 and 2 more")
    wide = Table("w", tuple("abcdefgh"), ("l" * 90, "a\nb"), np.array([0, 0]), (np.zeros((2, 8)),), tuple(range(8)))
    expected = f"w: 2 rows, 8 columns (text: a, b, c, d, e, f and 2 more), classes {'l' * 39}… 2, a b 0"
    assert describe(wide) == expected


def test_a_declared_range_refuses_or_clips():
    assert real().with_range((-1, 3)).label_range == (-1.0, 3.0)
    refused(r"2.*4.*0.*2\.5.*-1.*2", real().with_range, (0, 2.5))
    clipped = real().with_range((0, 2.5), "clip")
    assert clipped.labels.tolist() == [0.5, 2.0, 0.0, 2.5]
    assert real().labels.tolist() == [0.5, 2.0, -1.0, 3.0]
    for ends in ((1, 1), (2, 1), (0, np.inf), (np.nan, 1)):
        refused(None, real().with_range, ends)
    refused(r"data\.range", table().with_range, (0, 2))
    refused(r"data\.classes", real().with_classes, ["a", "b"])


@settings(derandomize=True)
@given(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4), st.floats(-1e5, 1e5), st.floats(1e-3, 1e5))
def test_clipped_labels_lie_in_the_range_and_others_stay(labels, lo, width):
    given_labels, hi = np.array(labels), lo + width
    clipped = real(labels=given_labels).with_range((lo, hi), "clip").labels
    inside = (given_labels >= lo) & (given_labels <= hi)
    assert ((clipped >= lo) & (clipped <= hi)).all()
    np.testing.assert_array_equal(clipped[inside], given_labels[inside])


ODD = ["1", "3", "5", "7", "9"]
YEARS = [str(year) for year in range(1990, 2000)]


def of_classes(*classes: str) -> Table:
    """One row of each class."""
    return Table("t", ("x",), classes, np.arange(len(classes)), (np.zeros((len(classes), 1)),))


@settings(derandomize=True)
@given(st.data())
def test_every_row_is_in_the_class_that_its_own_belongs_to(data: st.DataObject) -> None:
    drawn = data.draw(st.lists(st.text("ab+", min_size=1), min_size=2, max_size=8, unique=True))
    names = ["rest", "positive", "others", *drawn]
    positive = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=len(names) - 1, unique=True))
    labels = data.draw(st.lists(st.integers(0, len(names) - 1), min_size=1, max_size=20))
    two = Table("t", ("x",), tuple(names), np.array(labels), (np.zeros((len(labels), 1)),))
    two = two.with_positive(positive)
    assert two.labels.dtype == np.int64
    assert two.labels.tolist() == [int(names[label] in positive) for label in labels]
    assert len(set(two.classes)) == 2


def test_the_two_names_say_what_they_hold_and_what_makes_no_two_classes_is_refused():
    for classes, positive, expected in (
        ("0123456789", ODD, ("0+2+4+6+8", "1+3+5+7+9")),
        (("normal", "suspect", "pathologic"), ["pathologic", "suspect"], ("normal", "suspect+pathologic")),
        (YEARS, ["1990"], ("rest", "1990")),
        (YEARS, YEARS[1:], ("1990", "positive")),
        (("a", "b", "a+b"), ["a+b"], ("others", "a+b")),
        (["rest", *YEARS], ["rest"], ("others", "rest")),
        (("1", "2.50"), ["2.5"], ("1", "2.50")),  # another spelling of the same number
    ):
        assert of_classes(*classes).with_positive(positive).classes == expected
    known = ("normal", "suspect", "other")
    for positive, words in ((["normall"], r"'t'.*normall.*normal"), (known, "3"), ([], None), (["normal"] * 2, None)):
        refused(words, of_classes(*known).with_positive, positive)


def test_rows_are_passed_on_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.arange(60.0).reshape(20, 3)
    table = Table("toy", ("a", "b", "c"), (), np.zeros(20), (rows,))
    monkeypatch.setattr("scenarios.data.tables._CELLS_READ", 12)
    seen: list[int] = []
    doubled = FeatureMap(3, (Affine(np.zeros(3), 2.0 * np.eye(3)[:, :2]),))
    plain = FeatureMap.transform
    monkeypatch.setattr(FeatureMap, "transform", lambda a, part, out: seen.append(len(part)) or plain(a, part, out))
    order = np.arange(19)[::-1]
    np.testing.assert_array_equal(table.behind(doubled, order), 2 * rows[order, :2])
    assert seen == [4, 4, 4, 4, 3] == [len(part) for part in table.parts(order)]
    assert table.behind(doubled, order[:0]).shape == (0, 2)
    assert [len(part) for part in table.parts(order[:0])] == [0]


def test_different_rows_are_told_by_all_blocks_and_labels_and_counted_unless_drawn_or_too_many(rng, monkeypatch):
    codes = rng.integers(0, 2, (60, 2)).astype(np.uint16)
    texts = CodedTexts(codes, (np.array([5.0, 6.0]), np.array([7.0, 8.0])))
    numbers, labels = rng.integers(0, 2, (60, 1)).astype(np.float32), rng.integers(0, 2, 60)
    table = Table("t", ("a", "b", "c"), ("no", "yes"), labels, (numbers, texts), text=(1, 2))
    indices = rng.permutation(60)[:50]
    first, copies = table.different(indices)
    whole = np.column_stack([table.rows(indices), labels[indices]])
    known, places, counts = np.unique(whole, axis=0, return_index=True, return_counts=True)
    assert len(known) < 17
    order = np.argsort(places)
    np.testing.assert_array_equal(first, places[order])
    np.testing.assert_array_equal(copies, counts[order])
    ones, labels = np.ones((4, 2)), np.zeros(4, dtype=np.int64)
    table = Table("t", ("a", "b"), ("no", "yes"), labels, (ones,))
    assert [part.tolist() for part in table.different(np.arange(4))] == [[0], [4]]
    everyone = [[0, 1, 2, 3], [1, 1, 1, 1]]
    assert [part.tolist() for part in replace(table, drawn=True).different(np.arange(4))] == everyone
    monkeypatch.setattr("scenarios.data.tables._CELLS_COMPARED", 7)
    assert [part.tolist() for part in table.different(np.arange(4))] == everyone


def test_a_data_set_is_bundled_or_made_anew_for_every_instance_or_read_or_refused_by_its_reader():
    def named(name):
        return Table(name, ("x",), ("a", "b"), np.array([0, 1]), (np.zeros((2, 1)),))

    def reader(data_set, path):
        if path.name == "other.npz":
            raise data_set.refusal(path, "3 columns")
        return named(f"{data_set.name} from {path.name}")

    bundled = DataSet("own", "two rows", lambda: named("bundled"))
    assert bundled.read(None).name == bundled.read(None, instance=3).name == "bundled"
    made = DataSet("own", "two rows", lambda instance: named(f"number {instance}"), generated=True)
    assert [made.read(None).name, made.read(None, 2).name] == ["number 0", "number 2"]
    known = DataSet("own", "two rows", reader, file="own.npz", holds="an array X of 2 columns")
    assert known.read(Path("folder") / "own.npz").name == "own from own.npz"
    refused(r"other\.npz.*2.*3", known.read, Path("other.npz"))
    assert re.search(r"o\.npz.*2", str(known.refusal(Path("o.npz"))))
