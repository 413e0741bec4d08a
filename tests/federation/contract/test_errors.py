"""Errors: each kind has its own exit code, and is told in one sentence; what nobody foresaw says how to see more."""

import re

import pytest

from federation.contract.errors import (
    DEBUG,
    BudgetExceededError,
    FederationError,
    InputError,
    QuorumError,
    nearest_name,
    told,
    writing,
)
from federation.contract.guarantee import Adjacency, Guarantee, Unit


def test_every_kind_of_failure_has_an_exit_code_of_its_own_and_is_told_as_it_was_said():
    kinds = [FederationError, InputError, BudgetExceededError, QuorumError]
    assert all(issubclass(kind, FederationError) for kind in kinds)
    assert [kind.exit_code for kind in kinds] == [1, 2, 3, 4]  # scripts rely on these numbers
    assert {told(kind("rows must be finite; remove them")) for kind in kinds} == {"rows must be finite; remove them"}


def test_what_nobody_foresaw_is_one_line_with_its_type_and_how_to_see_more():
    text = told(ValueError("two\n  lines\tand tabs"))
    assert re.search(rf"ValueError.*{DEBUG}.*1", text)
    assert told(KeyError()).startswith("unexpected KeyError:; run")


@pytest.mark.parametrize(
    ("name", "allowed", "hint"),
    [
        ("vots", ["votes", "counts"], "; did you mean 'votes'?"),
        ("counts", ["count", "counts"], "; did you mean 'counts'?"),
        ("zebra", ["votes", "counts"], ""),
        ("votes", [], ""),
        ("", ["votes"], ""),
        (10, [1, 100, 11], "; did you mean '100'?"),
        (None, iter(["nine"]), ""),
    ],
)
def test_the_nearest_name_is_offered_if_one_is_near(name, allowed, hint):
    assert nearest_name(name, allowed) == hint


def test_bad_input_is_a_value_error_as_python_knows_them():
    with pytest.raises(ValueError, match="epsilon"):
        Guarantee(-1.0, 0.0, Unit.ROW, Adjacency.REPLACE, "none")
    assert not any(issubclass(kind, ValueError) for kind in (FederationError, BudgetExceededError, QuorumError))
    # What a reader refuses is not called unreadable once more.
    record = Guarantee(1.0, 0.0, Unit.ROW, Adjacency.REPLACE, "none").to_dict()
    with pytest.raises(InputError, match=r"epsilon.*-1"):
        Guarantee.from_dict(record | {"epsilon": -1})


def test_what_cannot_be_written_is_told_with_why_and_what_to_do(tmp_path):
    path = tmp_path / "none" / "file"
    told_so = f"{path}"
    with pytest.raises(InputError, match=told_so) as refused, writing(f"the table to {path}", "name another file"):
        path.write_text("", encoding="utf-8")
    assert isinstance(refused.value.__cause__, OSError)
    with pytest.raises(KeyError), writing(path, "allow it there"):  # no fault of the disk
        {}["none"]
