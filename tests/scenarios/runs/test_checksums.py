"""Files of finished worlds are told from what has become of them since."""

from __future__ import annotations

import hashlib
import json
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.contract.errors import InputError
from scenarios.runs.directory import Checksums, replaced, sha256

NAMES = ("table", "models/a")


def opened(root: Path) -> Checksums:
    return Checksums(root, root / "checksums.json")


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A run with two finished worlds of two files each."""
    sums = opened(tmp_path)
    for world in ("one", "two"):
        files = [tmp_path / world / name for name in NAMES]
        for path in files:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{world} {path.name}")
        sums.keep(world, {str(path.relative_to(tmp_path)): sha256(path) for path in files})
    return tmp_path


def test_what_is_as_it_was_is_not_broken(kept: Path) -> None:
    found = opened(kept)
    assert found.worlds == ["one", "two"]
    assert "one" in found
    assert "three" not in found
    assert found.broken(["one", "two", "three"]) == []


def test_the_first_broken_file_of_each_world_is_told(kept: Path) -> None:
    (kept / "one" / "table").unlink()
    (kept / "one" / "models" / "a").unlink()
    (kept / "two" / "models" / "a").write_text("two A")
    one, two = ("one", kept / "one" / "table", "is missing"), ("two", kept / "two" / "models" / "a", "has changed")
    assert opened(kept).broken(["one", "two"]) == [one, two]
    assert opened(kept).broken(["two"]) == [two]


def test_a_world_that_is_forgotten_is_not_finished_until_it_is_kept_again(kept: Path) -> None:
    sums = opened(kept)
    sums.forget("one")
    sums.forget("three")
    assert sums.worlds == opened(kept).worlds == ["two"]
    sums.keep("one", {})
    assert sums.worlds == opened(kept).worlds == ["two", "one"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"one": []}', '{"one": {"table": 1}}'])
def test_a_damaged_file_of_checksums_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "checksums.json").write_text(text)
    with pytest.raises(InputError, match=r"checksums\.json is damaged: .*; restore it, or start again"):
        opened(tmp_path)


def test_a_folder_in_place_of_the_checksums_is_named(tmp_path: Path) -> None:
    (tmp_path / "checksums.json").mkdir()
    with pytest.raises(InputError, match=r"checksums\.json is damaged: .*Is a directory.*; restore it"):
        opened(tmp_path)


@given(st.binary(max_size=40), st.integers(0, 39), st.integers(1, 255))
def test_any_byte_that_changes_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, at: int, by: int
) -> None:
    root = tmp_path_factory.mktemp("any")
    (root / "file").write_bytes(content)
    assert sha256(root / "file") == hashlib.sha256(content).hexdigest()
    sums = opened(root)
    sums.keep("world", {"file": sha256(root / "file")})
    assert sums.broken(["world"]) == []
    for other in (content + b"\0", content[:-1], content[:at] + bytes(b ^ by for b in content[at : at + 1])):
        (root / "file").write_bytes(other)
        assert bool(sums.broken(["world"])) == (other != content)


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    replaced(path, "before")
    with pytest.raises(UnicodeEncodeError):
        replaced(path, string.ascii_letters * 10_000 + "\ud800")
    assert path.read_text() == "before"
    replaced(path, json.dumps("after"))
    assert path.read_text() == '"after"'
