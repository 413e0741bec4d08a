"""What `federation advise` makes of its flags: what is open, and how many parties there are."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from aggregator.contract.protocol import Trust
from federation.contract.errors import InputError
from scenarios.commands.advise import Asked

NOTHING = Asked(**dict.fromkeys(field.name for field in fields(Asked)))
GIVEN = replace(NOTHING, rows=900, columns=4, epsilon=1.0, delta=1e-6, per_person=1, source="my.csv", positive=())


def settled(**flags):
    return replace(GIVEN, **flags).settled(asking=False)


def test_features_are_public_where_labels_alone_are_private():
    for protect, public in (("label", True), ("row", False), ("party", False)):
        subject, assumed = settled(protect=protect, trust="none")
        assert subject.wish.public_features is public
        assert assumed == [f"--features {'public' if public else 'private'}", "--task regression", "--parties 1"]
    subject, assumed = settled(protect="label", trust="none", features="private", task="binary", parties=3)
    assert (subject.wish.public_features, assumed) == (False, [])


def test_who_may_hold_all_rows_is_one_party():
    assert settled(protect="row", trust="aggregator", parties=7)[0].wish.parties == 1
    assert settled(protect="row", trust="none", parties=7)[0].wish.parties == 7
    subject, _ = settled(protect="party", trust="aggregator", parties=7, task="binary")
    assert (subject.wish.parties, subject.wish.trust) == (7, Trust.AGGREGATOR)


def test_tasks_by_flags():
    assert settled()[0].wish.task == "regression"
    assert settled(task="classification")[0].wish.task == "binary"
    assert settled(bags=3, bag_rows=9, classes=2)[0].wish.task == "ratio"


def test_public_rows_are_counted_or_given(tmp_path):
    path = tmp_path / "public.csv"
    path.write_text("a,b\n" + "1,2\n" * 31)
    assert settled(public_rows=path)[0].wish.public_rows == 31
    assert settled(public_rows=path, public_count=9)[0].wish.public_rows == 9


def test_numbers_of_a_file_are_not_given_beside_it():
    with pytest.raises(InputError, match="--n is for advice without data"):
        settled(about="my.csv", protect="label", trust="none")
    with pytest.raises(InputError, match="no such file"):
        settled(about="my.csv", rows=None, columns=None, write=Path("a.yaml"))
