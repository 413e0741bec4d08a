"""What is kept of an item is read as it was written, and nothing else is taken for it."""

import errno
from pathlib import Path

import pytest
from support.toy_paper import toy_item, toy_kept, toy_paper

from federation.contract.errors import InputError
from scenarios.reproductions.paper import keep, read, table

ITEM = toy_item()
PAPER = toy_paper(ITEM)


def test_values_and_record_come_back(tmp_path):
    found = toy_kept(data={"one": "toys"})
    keep(tmp_path, PAPER, ITEM, found)
    again = read(tmp_path, PAPER, ITEM)
    assert again.record == found.record
    assert again.by_split("one", "low", "published", "") == pytest.approx(found.by_split("one", "low", "published", ""))
    assert len(again.observations) == len(found.observations)
    assert again.by_split("one", "low", "default", "") == {}


def test_nothing_is_none(tmp_path):
    assert read(tmp_path, PAPER, ITEM) is None


@pytest.mark.parametrize(
    ("values", "record"),
    [("a,b\n1,2\n", None), ("setting,series,role,x,split,value\n", None), (None, "{}"), (None, "no json")],
)
def test_other_content_is_refused_by_name(tmp_path, values, record):
    keep(tmp_path, PAPER, ITEM, toy_kept())
    path = table(tmp_path, PAPER, ITEM)
    if values is not None:
        path.write_text(values)
    if record is not None:
        path.with_suffix(".json").write_text(record)
    with pytest.raises(InputError, match="table1"):
        read(tmp_path, PAPER, ITEM)


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "toy").write_text("a file")
    with pytest.raises(InputError, match="name another --out"):
        keep(tmp_path, PAPER, ITEM, toy_kept())


def test_what_cannot_be_written_leaves_what_was_there(tmp_path, monkeypatch):
    keep(tmp_path, PAPER, ITEM, toy_kept())
    before = table(tmp_path, PAPER, ITEM).read_bytes()

    def full(path, text, **options):
        path.write_bytes(text.encode()[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(InputError, match="No space left on device; name another --out"):
        keep(tmp_path, PAPER, ITEM, toy_kept(high_published={0: 0.1}))
    assert table(tmp_path, PAPER, ITEM).read_bytes() == before
