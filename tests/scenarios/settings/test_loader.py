import math
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import refused

from federation.contract.errors import InputError
from scenarios.settings.loader import LARGEST_TEXT, Document, dump, library, load, parse


def _document(value: dict) -> Document:
    return Document(value, "f.yaml", "f", Path.cwd(), {("a",): "f.yaml:1", ("a", "b"): "f.yaml:2", ("l",): "f.yaml:3"})


def test_scenarios_are_found_by_name_or_path_and_may_start_with_a_byte_order_mark(tmp_path: Path) -> None:
    assert "quickstart" in library()
    document = load("quickstart")
    assert document.value["name"] == document.stem == "quickstart"
    assert document.place(("name",)).startswith("quickstart.yaml:")
    path = tmp_path / "mine.yaml"
    path.write_bytes(b"\xef\xbb\xbfdata: {source: digits}\n")
    for source in (path, str(path)):
        document = load(source)
        assert (document.stem, document.base) == ("mine", tmp_path)
        assert document.value == {"data": {"source": "digits"}}
        assert document.place(("data", "source", "x")) == f"{path}:1"
        assert document.place(("other",)) == str(path)


@pytest.mark.parametrize(
    ("source", "hint"),
    [("quickstrt", "did you mean 'quickstart'?"), ("{folder}/min.yaml", "'mine.yaml'?"), ("zzz", "library: ")],
)
def test_an_unknown_scenario_names_the_nearest(source: str, hint: str, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("a: 1")
    refused(re.escape(hint), load, source.format(folder=tmp_path))


def test_files_that_are_no_scenarios_folders_and_impossible_paths_are_bad_input(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    for content in (b"\xff\xfe", b"[1, 2]", b"", b"text"):
        path.write_bytes(content)
        refused(r"x\.yaml", load, path)
    for source in (str(tmp_path), "a\0b"):
        refused(None, load, source)


def test_a_mapping_is_copied_and_must_hold_plain_values() -> None:
    inner = {"count": 3}
    document = load({"parties": inner, "t": (1, 2)})
    document.override("parties.count=4")
    assert inner == {"count": 3}
    assert document.value == {"parties": {"count": 4}, "t": [1, 2]}
    refused(None, load, {"a": object()})


def test_overrides_reach_keys_list_items_and_missing_sections_and_name_what_they_replace_or_make():
    document = _document({"a": {"b": 1}, "l": [{"k": 1}, 2], "n": None})
    for setting in ("a.b=1e-3", "l.0.k=on", "l.1=[1, {x: 2}]", "n.m.o=text=with=equals", "a.0=3"):
        document.override(setting)
    assert document.value == {
        "a": {"b": 1e-3, "0": 3},
        "l": [{"k": "on"}, [1, {"x": 2}]],
        "n": {"m": {"o": "text=with=equals"}},
    }
    assert document.place(("l", 1, 1, "x")) == "--set l.1=[1, {x: 2}]"
    assert document.place(("a", "b")) == "--set a.b=1e-3"
    assert document.place(("a",)) == "f.yaml:1"
    assert document.order(("a",)) < document.order(("l", 1)) < document.order(("n", "m", "o"))
    assert document.order(("nowhere",)) == -1
    document = _document({"a": {"b": 1}})
    document.override("a={c: 2}")
    document.override("x.y=1")
    assert document.value == {"a": {"c": 2}, "x": {"y": 1}}
    assert document.place(("a", "b")) == "--set a={c: 2}"
    assert document.place(("x",)) == "--set x.y=1"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("a", "expects KEY=VALUE"),
        ("=1", "expects KEY=VALUE"),
        ("a..b=1", "expects KEY=VALUE"),
        ("a.b=", "expects KEY=VALUE"),
        ("l.2=1", "l is a list with positions 0 to 1, got '2'"),
        ("l.x=1", "l is a list with positions 0 to 1, got 'x'"),
        ("n.0=1", "n is not given, so it has no positions; set n itself"),
        ("a.b.c=1", "a.b is 1 and has no key 'c'"),
        ("a.b=[1", "--set a.b=[1:1: not valid YAML"),
    ],
)
def test_overrides_that_lead_nowhere(setting: str, message: str) -> None:
    refused(re.escape(message), _document({"a": {"b": 1}, "l": [1, 2]}).override, setting)


def test_scalars_of_the_newer_rules_all_else_is_text_and_lines_of_keys_and_items():
    values = {"1e-5": 1e-5, "1.0e-5": 1e-5, "1e5": 1e5, "+3": 3, "-.5": -0.5, "1.": 1.0, ".inf": math.inf}
    values |= {"-.inf": -math.inf, "true": True, "False": False, "~": None, "null": None, "": None}
    texts = "inf nan on off yes no y 1_000 0123 1:30 0x1f 0o17 2020-01-01 1e ."
    for text, value in (values | {text: text for text in texts.split()}).items():
        parsed, _ = parse(f"a: {text}", "x")
        assert parsed == {"a": value}
        assert type(parsed["a"]) is type(value)
    _, lines = parse("a: 1\nb:\n  - c: 2\n    d: [3,\n      4]\n", "x")
    nested = {("b", 0): 3, ("b", 0, "c"): 3, ("b", 0, "d"): 4, ("b", 0, "d", 0): 4, ("b", 0, "d", 1): 5}
    assert lines == {("a",): 1, ("b",): 2, **nested}
    assert parse("a: &a {b: 1}\nc: {<<: *a}", "x")[0]["c"] == {"<<": {"b": 1}}


_BOMB = "a: &a [1, 1]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 10)}]\n" for i in range(8)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", "f.yaml:3: key 'a' occurs twice, first on line 1"),
        ("a: {b: 1, b: 2}", "f.yaml:1: key 'b' occurs twice"),
        ("a: 1\n2: 3", "f.yaml:2: a key must be text"),
        ("? [1]\n: 2", "f.yaml:1: a key must be text"),
        ("a: !!python/object:os.system x", "f.yaml:1: the tag python/object:os.system is not allowed"),
        ("a: !!binary aGk=", "f.yaml:1: the tag binary is not allowed"),
        ("a: 1\n---\nb: 1", "f.yaml:2: not valid YAML"),
        ("a: 1\nb: [1", "f.yaml:2: not valid YAML"),
        ("a: *b", "f.yaml:1: not valid YAML: found undefined alias"),
        ("a: &a [*a]", "f.yaml:1: more than"),
        ("a: \0", "f.yaml: not valid YAML"),
        ('a: "\\ud800"', "f.yaml:1: cannot read"),
        ("a: " + "9" * 5000, "f.yaml:1: cannot read"),
        ("[" * 5000, "f.yaml: nested too deeply"),
        ("a: " + "[" * 22 + "]" * 22, "f.yaml: nested too deeply"),
        ("a: " + "[" * 21 + "]" * 21, "f.yaml:1: more than"),
        (_BOMB, "aliases of aliases"),
        ("#" * (LARGEST_TEXT + 1), "f.yaml: longer than"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text, "f.yaml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_writer_quotes_for_readers_of_the_older_rules_and_keeps_line_breaks_on_one_line() -> None:
    assert dump({"a": "on", "b": "1e-5", "c": 1e-6}, flow=True) == "{a: 'on', b: '1e-5', c: 1.0e-06}\n"
    assert dump("x") == "x\n"
    text = "a\x85b\u2028c\n\nd\r\te é"
    assert dump({"a": text}, flow=True).count("\n") == 1
    assert parse(dump({"a": text}), "x")[0] == {"a": text}


_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(derandomize=True)
@given(_VALUES, st.sampled_from([True, None]))
def test_what_is_written_is_read_back(value: object, flow: bool | None) -> None:
    text = dump({"key": value}, flow=flow)
    assert parse(text, "x")[0] == {"key": value}


@settings(derandomize=True)
@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_as_input(text: str) -> None:
    try:
        value, _ = parse(text, "x")
    except InputError:
        return
    assert yaml.safe_load(dump({"v": value}, flow=None)) is not None
