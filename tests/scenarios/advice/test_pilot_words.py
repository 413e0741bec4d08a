"""What is told of a pilot: marked where rows are private, without a figure in the scenario, and what is open."""

from __future__ import annotations

import pytest

from aggregator.advice import Wish, rank
from aggregator.contract.protocol import Trust
from scenarios.advice import pilot as pilot_words
from scenarios.advice.pilot import Needed, Pilot
from scenarios.advice.pilot_runs import Values
from scenarios.advice.texts import named
from scenarios.scores.scoring import ACCURACY

RANKED = rank(Wish("binary", "label", Trust.NONE, rows=900, features=5, parties=9)).ranked
NAMES = [named(one) for one in RANKED]


def found(*means, splits=3, noise_free=0.9, **changes):
    def values(mean):
        return {split: Values("accuracy", (mean, mean + 0.002 * split), mean) for split in range(splits)}

    known = {name: values(mean) for name, mean in zip(NAMES, means, strict=False)}
    references = {"constant": values(0.6), "pooled": values(0.9), "noise_free": values(noise_free)}
    made = Pilot(ACCURACY, {named(one): one for one in RANKED}, {**known, **references})
    for name, value in changes.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize("private", [True, False])
def test_what_was_made_on_private_rows_is_marked_everywhere(private):
    one = found(0.8, 0.7)
    table, told = pilot_words.rows(one, private), pilot_words.sentences(one, private, 3.0, "my.csv")
    assert ("NON-PRIVATE" in told[0]) is private
    assert any("[NON-PRIVATE]" in row["variant"] for row in table) is private
    assert pilot_words.record(one, private, 3.0)["non_private"] is private
    assert ("NON-PRIVATE" in pilot_words.why(one, private)) is private
    assert not any(character.isdigit() for character in pilot_words.why(one, private))
    needed = Needed(0.8, {"a": {0.1: 0.5, 1.0: 0.9}}, 0.95, 0.6)
    assert ("[NON-PRIVATE]" in pilot_words.needed(needed, private)) is private


def test_intervals_are_told_from_three_splits_on():
    head = pilot_words.AGAINST
    three, one = (pilot_words.rows(found(0.8, 0.7, splits=count), True) for count in (3, 1))
    assert "(" in three[1][head]
    assert one[1][head].endswith("too few splits for an interval")
    assert "one split, and so no interval" in " ".join(pilot_words.sentences(found(0.8, splits=1), True, 1.0, "x"))


def test_what_was_left_out_and_why_is_told():
    told = " ".join(pilot_words.sentences(found(0.8, left_out=["b on split 1"]), True, 1.0, "x"))
    assert "Left out, as there was no time: b on split 1." in told
    stopped = pilot_words.sentences(found(0.8, left_out=["b"], interrupted=True), True, 1.0, "x")
    assert "the pilot was interrupted" in " ".join(stopped)
    assert "Nothing was tried" in pilot_words.sentences(found(), True, 1.0, "x")[-1]


def test_a_verdict_names_the_noise_or_the_model_as_the_cause():
    assert "useful; 67% of what the pooled rows gain" in pilot_words.sentences(found(0.8), True, 1.0, "x")[-1]
    noise = pilot_words.sentences(found(0.5), True, 1.0, "x")
    assert "worse than the answer that is the same for all rows" in noise[-2]
    assert "it is the noise" in noise[-1]
    assert "its model does not suit" in pilot_words.sentences(found(0.5, noise_free=0.6), True, 1.0, "x")[-1]


def test_the_epsilon_is_told_with_an_interval_or_that_it_is_not_reached():
    curve = {0.1: 0.5, 1.0: 0.7, 10.0: 0.9}
    assert "at epsilon 3.2 (2.1 to 4.7) by a; pooled has 0.95, the constant answer 0.60" in pilot_words.needed(
        Needed(0.8, {"a": curve}, 0.95, 0.6), True
    )
    assert "at epsilon 0.1 already by a" in pilot_words.needed(Needed(0.5, {"a": curve}, None, None), True)
    assert "not reached by epsilon 10; pooled has 0.95" in pilot_words.needed(
        Needed(0.99, {"a": curve}, 0.95, 0.6), True
    )
