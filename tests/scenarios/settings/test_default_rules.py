"""How defaults were chosen, as files, records and people are told: in lines that fit, and as plain values."""

from __future__ import annotations

import json

import pytest

from aggregator.contract.protocol import Rule
from aggregator.protocols.soft_vote.soft_vote import SoftVote
from federation.contract.errors import InputError
from scenarios.settings.rules import described, in_short, recorded, why_default

LONG = Rule("noise: " + "pure " * 40, "rule " * 60, "validated " * 50)


def test_baselines_and_protocols_without_a_rule_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SoftVote, "why_default", ())
    for kind in ("pooled", "soft_vote"):
        assert (why_default(kind), in_short(kind), recorded([kind])) == ((), [], [])
    assert "How defaults were chosen:" not in described("soft_vote")[1]


def test_no_line_is_long_and_no_word_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SoftVote, "why_default", (LONG,))
    short, full = in_short("soft_vote"), described("soft_vote")[1]
    chosen = full[full.index("How defaults were chosen:") :]
    assert max(map(len, short)) <= 110 < len(LONG.rule)
    for word, lines in (("pure", short), ("rule", chosen), ("validated", chosen)):
        assert " ".join(lines).split().count(word) == {"pure": 40, "rule": 60, "validated": 50}[word]


def test_a_run_records_every_protocol_once_as_plain_values() -> None:
    kinds = ["label_sums", "private_labels", "pooled", "label_sums"]
    found = recorded(kinds)
    assert json.loads(json.dumps(found)) == found
    assert [rule["protocol"] for rule in found] == sorted(rule["protocol"] for rule in found)
    assert [rule["default"] for rule in found if rule["protocol"] == "private_labels"] == ["noise: auto"]
    assert len(found) == len(why_default("label_sums")) + len(why_default("private_labels"))


def test_a_protocol_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'soft_vote'"):
        described("soft_votes")
