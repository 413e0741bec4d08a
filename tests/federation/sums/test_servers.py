"""Who may add up a sum: each kind has words for people and an adversary for parties."""

from typing import get_args

from federation.secure_aggregation.plan import ADVERSARY, SAID, Servers


def test_each_kind_is_named_and_one_only_is_believed() -> None:
    assert {*ADVERSARY} == {*SAID} == {*get_args(Servers)}
    assert [name for name, adversary in ADVERSARY.items() if adversary == "semi_honest"] == ["one_semi_honest"]
