"""The pilot says who goes on and when it ends, and marks what was made on private rows; measurements are played."""

import re
from dataclasses import replace

import pytest
from support.refusals import refused

from aggregator.advice import Wish, rank
from aggregator.contract.protocol import Trust
from federation.contract.trust import TrustTerms
from scenarios.advice import pilot as piloting
from scenarios.advice.pilot_runs import Deadline, OutOfTimeError, Values
from scenarios.advice.target import of_scenario
from scenarios.advice.texts import named
from scenarios.scores.scoring import ACCURACY

WISH = Wish("binary", "label", Trust.NONE)


@pytest.fixture(scope="module")
def subject():
    return of_scenario("breast-cancer-mean-operator", WISH, None)


@pytest.fixture(scope="module")
def names(subject):
    """The names of the ranked protocols."""
    return [named(one) for one in rank(subject.wish).ranked]


class Played:
    """A bench whose values are known: `scores` by kind and options, the same on all splits."""

    def __init__(self, scores, fail=None):
        self.scores, self.fail, self.asked = scores, fail, []

    def measured(self, entries, split, draws, epsilons, until):
        first = " ".join([entries[0]["kind"], *(f"{k}: {v}" for k, v in entries[0].items() if k != "kind")])
        if self.fail is not None and len(self.asked) == self.fail[0]:
            raise self.fail[1]
        self.asked.append((first, split, draws, [entry["kind"] for entry in entries[1:]]))
        level = {"constant": 0.6, "pooled": 0.95, "noise_free": 0.9}
        found = {}
        for epsilon in epsilons:
            for place, entry in enumerate(entries):
                score = level.get(entry["kind"], self.scores.get(first))
                if score is not None:
                    value = score(epsilon) if callable(score) else score
                    found[place, epsilon] = Values("accuracy", (value,) * draws, value)
        return found


@pytest.fixture
def play(monkeypatch, subject):
    def run(scores, fail=None, subject=subject):
        played = Played(scores, fail)
        monkeypatch.setattr(piloting, "Bench", lambda *_: played)
        return piloting.pilot(subject, rank(subject.wish).ranked, Deadline(1000.0), None, True), played

    return run


def test_half_goes_on_with_all_draws_and_then_to_further_splits(play, names):
    assert len(names) == 3
    found, played = play({names[0]: 0.7, names[1]: 0.9, names[2]: 0.8})
    first = [(name, split, draws) for name, split, draws, _ in played.asked]
    assert first[:3] == [(name, 0, piloting.FEW) for name in names]
    assert first[3:6] == [
        (name, 0, piloting.DRAWS) for name in (names[1], names[2], names[0])
    ]  # the first always stays
    assert {split for _, split, _ in first} == set(range(piloting.SPLITS))
    assert played.asked[0][3] == ["constant", "pooled", "noise_free"]
    assert played.asked[1][3] == []  # references are measured once on a split
    assert [named(one) for one in found.finalists] == [names[1], names[0]] or found.standings()[0].name == names[1]
    assert found.verdict().finding == "useful"
    assert found.left_out == []


@pytest.mark.parametrize(("stop", "interrupted"), [(OutOfTimeError(), False), (KeyboardInterrupt(), True)])
def test_what_was_measured_before_the_end_is_kept_and_the_rest_is_named(play, names, stop, interrupted):
    found, _ = play(dict.fromkeys(names, 0.8), fail=(2, stop))
    assert found.interrupted is interrupted
    assert [one.name for one in found.standings()] == names[:2]
    assert found.left_out == [f"{names[2]} on split 1 with {piloting.FEW} draws"]
    nothing, _ = play(dict.fromkeys(names, 0.8), fail=(0, stop))
    assert nothing.standings() == []
    assert nothing.verdict() is None
    assert [named(one) for one in nothing.finalists] == names[:2]  # as by public numbers


def test_what_fails_is_named_and_nothing_to_try_is_refused(play, subject, names):
    found, _ = play({names[0]: 0.7, names[1]: 0.8})
    assert f"{names[2]} (it failed on these rows)" in found.left_out
    refused(None, piloting.pilot, subject, [], Deadline(10), None, True)


def test_the_epsilon_that_is_needed_is_read_off_the_better_curve(monkeypatch, subject, names):
    ranked = rank(subject.wish).ranked
    curve = {0.1: 0.55, 0.3: 0.65, 1.0: 0.75, 3.0: 0.85, 10.0: 0.9}
    played = Played({names[0]: curve.__getitem__, names[1]: lambda epsilon: 0.5})
    monkeypatch.setattr(piloting, "Bench", lambda *_: played)
    found = piloting.needed_epsilon(subject, ranked, 0.8, Deadline(100), None, True)
    name, epsilon = found.best
    assert (name, found.pooled, found.constant) == (names[0], pytest.approx(0.95), pytest.approx(0.6))
    assert 1.0 < epsilon < 3.0
    assert piloting.needed_epsilon(subject, ranked, 0.99, Deadline(100), None, True).best is None


def test_draws_that_cost_as_much_as_exchanges_get_their_share_of_the_time():
    assert piloting.affordable_draws(0.0, 0.1) == piloting.DRAWS
    for seconds in (0.5, 3.0, 40.0):
        taken = piloting.affordable_draws(seconds, 10.0)
        assert piloting.FEW <= taken <= piloting.DRAWS
        assert taken == piloting.FEW or taken * seconds / piloting.FEW <= 10.0


def test_of_protocols_that_differ_in_trust_the_least_noisy_are_tried(play):
    subject = of_scenario("breast-cancer-mean-operator", Wish("binary", "label", Trust.SECURE), None)
    subject = replace(subject, wish=replace(subject.wish, terms=TrustTerms(50)))
    ranked = rank(subject.wish).ranked
    found, _ = play({named(one): 0.8 for one in ranked}, subject=subject)
    assert len(found.ranked) < len(ranked)
    plain = [(one.kind, *sorted((key, str(v)) for key, v in one.options.items() if key != "trust")) for one in ranked]
    assert len(found.ranked) == len(set(plain))
    assert found.first == named(ranked[0])


def test_a_curve_of_easy_splits_is_moved_to_all_splits_and_made_to_rise_before_it_is_read():
    pooled = {0: 0.9, 1: 0.8, 2: 0.7}
    curves = {0: {1.0: 0.85, 3.0: 0.9}, 1: {1.0: 0.75}}
    assert piloting.levelled(curves, pooled) == pytest.approx({1.0: 0.8 - 0.05, 3.0: 0.9 - 0.05})
    assert piloting.levelled(curves, {}) == pytest.approx({1.0: 0.8, 3.0: 0.9})
    assert piloting.crossing({0.1: 0.5, 1.0: 0.8, 10.0: 0.6}, 0.7) == pytest.approx(1.0)
    assert piloting.crossing({0.1: 0.9, 1.0: 0.95}, 0.7) == 0.1
    assert piloting.crossing({}, 0.7) is None


RANKED = rank(Wish("binary", "label", Trust.NONE, rows=900, features=5, terms=TrustTerms(9))).ranked
NAMES = [named(one) for one in RANKED]


def found(*means, splits=3, noise_free=0.9, **changes):
    def values(mean):
        return {split: Values("accuracy", (mean, mean + 0.002 * split), mean) for split in range(splits)}

    known = {name: values(mean) for name, mean in zip(NAMES, means, strict=False)}
    references = {"constant": values(0.6), "pooled": values(0.9), "noise_free": values(noise_free)}
    made = piloting.Pilot(ACCURACY, {named(one): one for one in RANKED}, {**known, **references})
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def sentences(*means, **changes):
    """The sentences about a pilot on private rows."""
    return piloting.sentences(found(*means, **changes), True, 1.0, "x")


@pytest.mark.parametrize("private", [True, False])
def test_what_was_made_on_private_rows_is_marked_everywhere(private):
    one = found(0.8, 0.7)
    table, told = piloting.rows(one, private), piloting.sentences(one, private, 3.0, "my.csv")
    assert ("NON-PRIVATE" in told[0]) is private
    assert any("[NON-PRIVATE]" in row["variant"] for row in table) is private
    assert piloting.record(one, private, 3.0)["non_private"] is private
    assert ("NON-PRIVATE" in piloting.why(one, private)) is private
    assert not any(character.isdigit() for character in piloting.why(one, private))
    needed = piloting.Needed(0.8, {"a": {0.1: 0.5, 1.0: 0.9}}, 0.95, 0.6)
    assert ("[NON-PRIVATE]" in piloting.needed(needed, private)) is private


def test_intervals_are_told_from_three_splits_on_and_what_was_left_out_and_the_cause_of_a_verdict():
    head = piloting.AGAINST
    three, one = (piloting.rows(found(0.8, 0.7, splits=count), True) for count in (3, 1))
    assert "(" in three[1][head]
    assert one[1][head].endswith("too few splits for an interval")
    assert "one split, and so no interval" in " ".join(sentences(0.8, splits=1))
    left_out = " ".join(sentences(0.8, left_out=["b on split 1"]))
    assert "Left out, as there was no time: b on split 1." in left_out
    assert "the pilot was interrupted" in " ".join(sentences(0.8, left_out=["b"], interrupted=True))
    assert "Nothing was tried" in sentences()[-1]
    assert "useful; 67% of what the pooled rows gain" in sentences(0.8)[-1]
    *_, finding, cause = sentences(0.5)
    assert "worse than the answer that is the same for all rows" in finding
    assert "it is the noise" in cause
    assert "its model does not suit" in sentences(0.5, noise_free=0.6)[-1]


@pytest.mark.parametrize(
    ("wanted", "known", "told"),
    [
        (0.8, (0.95, 0.6), r"at epsilon 3\.2 \(2\.1 to 4\.7\) by a; pooled has 0\.95, the constant answer 0\.60"),
        (0.5, (None, None), r"epsilon.*0\.1"),
        (0.99, (0.95, 0.6), r"not reached by epsilon 10; pooled has 0\.95"),
    ],
)
def test_the_epsilon_is_told_with_an_interval_or_that_it_is_not_reached(wanted, known, told):
    curve = {0.1: 0.5, 1.0: 0.7, 10.0: 0.9}
    assert re.search(told, piloting.needed(piloting.Needed(wanted, {"a": curve}, *known), True))
