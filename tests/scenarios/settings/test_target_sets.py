"""The section `data.targets`: which scenarios need it."""

from scenarios.settings.schema import resolve
from scenarios.settings.target_sets import wants_targets


def test_who_wants_targets():
    plain = {"data": {"source": "digits"}, "parties": {"count": 5}, "privacy": {"epsilon": 1}}
    assert not wants_targets(resolve(plain))
    assert wants_targets(resolve(plain, ["protocols=[{kind: pooled}, {kind: class_ratio}]"]))
