"""Which baselines are put beside protocols, and what the one without noise stands for."""

from __future__ import annotations

from typing import Any

import pytest

from federation.contract.errors import InputError
from scenarios.settings.protocol_options import Protocol
from scenarios.settings.rules import baselines_beside, noise_free, unfounded
from scenarios.settings.schema import resolve


def parsed(*entries: dict[str, Any]) -> list[Protocol]:
    return [Protocol.parse(entry) for entry in entries]


@pytest.mark.parametrize(
    ("kinds", "alone", "beside"),
    [
        (["soft_vote"], False, ["constant", "pooled", "individual", "noise_free"]),
        (["soft_vote"], True, ["constant", "pooled", "noise_free"]),
        (["pooled", "soft_vote"], False, ["constant", "individual", "noise_free"]),
        (["noise_free", "soft_vote"], False, ["constant", "pooled", "individual"]),
        (["class_ratio"], False, ["constant", "pooled", "noise_free"]),
        (["label_sums"], False, ["constant", "pooled", "noise_free"]),
        (["pooled"], False, []),
        (["unknown", None], False, []),
    ],
)
def test_those_of_the_task_that_are_not_listed(kinds: list[str], alone: bool, beside: list[str]) -> None:
    assert baselines_beside([{"kind": kind} for kind in kinds], alone) == beside


@pytest.mark.parametrize(
    ("entries", "stands_for", "options"),
    [
        ([{"kind": "soft_vote"}], "soft_vote", {}),
        ([{"kind": "pooled"}, {"kind": "soft_vote", "noise": ["gaussian", "pure"]}], "soft_vote", {}),
        ([{"kind": "soft_vote", "noise": ["off", "gaussian"]}], "soft_vote-gaussian", {}),
        ([{"kind": "soft_vote", "submit": "votes"}, {"kind": "soft_vote"}], "soft_vote", {"submit": "statistic"}),
        ([{"kind": "soft_vote", "submit": "votes"}], "soft_vote-submit=votes", {"submit": "votes"}),
        ([{"kind": "mean_operator", "trust": "secure"}], "mean_operator-secure", {"trust": "secure"}),
    ],
)
def test_it_is_the_default_or_the_first_that_adds_noise_with_all_its_options(
    entries: list[dict[str, Any]], stands_for: str, options: dict[str, Any]
) -> None:
    name, planned = noise_free(parsed(*entries)) or ("", None)
    assert name == stands_for
    assert planned is not None
    assert (planned.name, planned.reference, planned.options["noise"]) == ("noise_free", True, "off")
    assert options.items() <= planned.options.items()


@pytest.mark.parametrize("entries", [[{"kind": "pooled"}], [{"kind": "soft_vote", "noise": "off"}]])
def test_where_nothing_adds_noise_it_stands_for_nothing_and_is_refused(entries: list[dict[str, Any]]) -> None:
    assert noise_free(parsed(*entries)) is None
    listed = [*entries, {"kind": "noise_free"}]
    assert [position for position, _ in unfounded(parsed(*listed))] == [1]
    plain = {"data": {"source": "digits"}, "parties": {"count": 20}, "privacy": {"epsilon": 1}, "protocols": listed}
    with pytest.raises(InputError, match="to leave out, or its options need some; remove it"):
        resolve({**plain, "baselines": False})
