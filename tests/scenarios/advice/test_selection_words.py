"""What is told of a private selection: its choice and its cost, and nothing by which tries could be counted."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from aggregator.advice import Wish, rank
from aggregator.contract.protocol import Trust
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from federation.mechanisms.accounting.private_selection import RandomStopping
from federation.mechanisms.noise.additive import calibrate_laplace
from scenarios.advice import private_selection as selection_words
from scenarios.advice.private_selection import Selected
from scenarios.advice.texts import named

RANKED = rank(Wish("binary", "label", Trust.NONE, rows=900, features=5, parties=9)).ranked
SPENT = Guarantee(2.5, 1e-6, Unit.LABEL, Adjacency.REPLACE, "private_selection")


def selection(left_out=()):
    noise = calibrate_laplace(l1_sensitivity=0.01, dimension=1, epsilon=1.0)
    law = RandomStopping.of_mean(8)
    return SimpleNamespace(candidates=RANKED[:2], left_out=left_out, law=law, noise=noise)


@pytest.mark.parametrize("place", [0, 1])
def test_the_choice_and_its_cost_are_told_beside_what_costs_nothing(place):
    found = Selected(RANKED[place], 0.812, None, SPENT)
    told = selection_words.sentences(selection(["x (why)"]), found)
    assert any("epsilon 2.5 and delta 1e-06 for one label (replace)" in line for line in told)
    assert any(f"Use {named(RANKED[place])}" in line and "0.812, give or take 0.014" in line for line in told)
    assert ("choose the same, for nothing" in told[-1]) is (place == 0)
    assert "Left out: x (why)." in told
    assert not any(" s." in line for line in told)
    [row] = selection_words.rows(selection(), found)
    assert row["chosen"] == named(RANKED[place])
    record = json.loads(json.dumps(selection_words.record(selection(), found)))
    assert (record["charged"], record["guarantee"]["epsilon"]) == (True, 2.5)
    assert "every ledger counts that" in selection_words.why(found)
