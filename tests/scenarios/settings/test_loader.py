from __future__ import annotations

from pathlib import Path

import pytest

from federation.contract.errors import InputError
from scenarios.settings.loader import Document, library, load


def _document(value: dict) -> Document:
    return Document(value, "f.yaml", "f", Path.cwd(), {("a",): "f.yaml:1", ("a", "b"): "f.yaml:2", ("l",): "f.yaml:3"})


def test_library_scenarios_are_found_by_name() -> None:
    assert "quickstart" in library()
    document = load("quickstart")
    assert document.value["name"] == document.stem == "quickstart"
    assert document.place(("name",)).startswith("quickstart.yaml:")


def test_a_file_is_found_by_path_and_may_start_with_a_byte_order_mark(tmp_path: Path) -> None:
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
    [
        ("quickstrt", "did you mean 'quickstart'?"),
        ("{folder}/min.yaml", "did you mean 'mine.yaml'?"),
        ("zzz", "library: "),
    ],
)
def test_an_unknown_scenario_names_the_nearest(source: str, hint: str, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("a: 1")
    with pytest.raises(InputError) as caught:
        load(source.format(folder=tmp_path))
    assert "there is no scenario file" in str(caught.value)
    assert hint in str(caught.value)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[1, 2]", b"", b"text"])
def test_files_that_are_no_scenarios(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"x\.yaml"):
        load(path)


def test_a_folder_and_an_impossible_path_are_bad_input(tmp_path: Path) -> None:
    for source in (str(tmp_path), "a\0b"):
        with pytest.raises(InputError, match="cannot read the scenario"):
            load(source)


def test_a_mapping_is_copied_and_must_hold_plain_values() -> None:
    inner = {"count": 3}
    document = load({"parties": inner, "t": (1, 2)})
    document.override("parties.count=4")
    assert inner == {"count": 3}
    assert document.value == {"parties": {"count": 4}, "t": [1, 2]}
    with pytest.raises(InputError, match="texts, numbers, lists and mappings"):
        load({"a": object()})


def test_overrides_reach_keys_list_items_and_missing_sections() -> None:
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


def test_overriding_a_section_replaces_the_places_inside_it() -> None:
    document = _document({"a": {"b": 1}})
    document.override("a={c: 2}")
    assert document.value == {"a": {"c": 2}}
    assert document.place(("a", "b")) == "--set a={c: 2}"


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
    with pytest.raises(InputError) as caught:
        _document({"a": {"b": 1}, "l": [1, 2]}).override(setting)
    assert message in str(caught.value)


def test_a_section_made_by_an_override_is_named_by_it(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("data: {source: digits}\n")
    document = load(path)
    document.override("x.y=1")
    assert document.place(("x",)) == "--set x.y=1"
