"""What honest counts of an exchange with noise reach: against draws, and what is left of others.

What is said in an exchange is taken in where an honest party could say it. Counts over all parties of which nobody sees
a part.
"""

from dataclasses import replace

import numpy as np
import pytest
from support.summed_plans import plan
from support.two_class_parties import Parties
from support.two_class_questions import marginals

from aggregator.collectors.collectors import Secure, Summed
from aggregator.collectors.robust_sums import Robustness
from federation.contract.errors import FederationError, InputError
from federation.contract.guarantee import Guarantee
from federation.contract.honest import PartySize
from federation.contract.plugins import Reference
from federation.contract.query import ReleaseId, Submission
from federation.contract.randomness import NoiseBits
from federation.queries import marginals as marginal_range
from federation.queries.marginals import HonestMarginals
from parties.guard import answering
from parties.party_data.cohort import Cohort

MOST, PARTIES, BINS = 60, 30, 15
QUESTIONS = {
    "row": marginals("gaussian"),
    "pure": marginals("pure"),
    "quiet": marginals("gaussian", epsilon=200.0),
    "rows of rows": marginals("pure", asks="rows"),
    "label": marginals("pure", "label", "replace"),
    "gaussian label": marginals("gaussian", "label", "replace"),
    "rows of labels": marginals("pure", "label", "replace", asks="rows"),
}


def extreme(question, draws, wrong=True, noisy=True):
    """Answers of a party all of whose rows are in the first bins, and in error or not."""
    rows = np.zeros((draws, BINS), dtype=np.int64)
    rows[:, ::5] = MOST
    errors, bits = rows if wrong else np.zeros_like(rows), NoiseBits(1, "marginals")
    noise = question.mechanism()
    hidden = (lambda counts: noise.release(counts, bits)) if noisy else (lambda counts: counts)
    if question.protect == "label":
        return {"rows": 1.0 * rows, **({"errors": 1.0 * hidden(errors)} if question.asks == "errors" else {})}
    if question.asks == "rows":
        return {"rows": 1.0 * hidden(rows)}
    said = hidden(errors)
    return {"errors": 1.0 * said, "rows": 1.0 * (said + hidden(rows - errors))}


def promise_of(question):
    promised = question.promise()
    return promised if isinstance(promised, Guarantee) else None


def summed(question, parties, **options):
    """The collector of the sum over parties of at most 60 rows."""
    return Summed(question, parties, promise_of(question), public=PartySize(1, MOST), **options)


@pytest.mark.parametrize("wrong", [True, False])
@pytest.mark.parametrize("name", QUESTIONS)
def test_no_honest_answer_is_changed(name, wrong):
    question = QUESTIONS[name]
    sent = extreme(question, 4000, wrong)
    honest = HonestMarginals(question, MOST)
    parts, changed = honest.bounded(sent)
    assert not changed.any()
    for field, array in honest.joined(parts).items():
        np.testing.assert_array_equal(array, sent[field])


@pytest.mark.parametrize("name", ["row", "pure", "label"])
def test_honest_answers_are_changed_as_often_as_may_be_at_most(name, monkeypatch):
    monkeypatch.setattr(marginal_range, "BEYOND", 0.2)
    nothing = {field: np.zeros_like(array) for field, array in extreme(QUESTIONS[name], 1, noisy=False).items()}
    noise = QUESTIONS[name].mechanism()
    drawn = noise.release(np.zeros((2, 3000, BINS), dtype=np.int64), NoiseBits(2, "marginals"))
    rows = nothing["rows"] + (drawn.sum(axis=0) if name != "label" else 0)
    sent = {"errors": nothing["errors"] + drawn[0], "rows": rows}
    changed = HonestMarginals(QUESTIONS[name], 0).bounded(sent)[1]
    assert 0.05 < changed.mean() <= 0.22


@pytest.mark.parametrize("name", ["row", "pure", "gaussian label"])
def test_a_long_answer_is_scaled_around_half_the_rows(name):
    question = QUESTIONS[name]
    honest, sent = HonestMarginals(question, MOST), extreme(question, 1, noisy=False)
    far = {**sent, "errors": sent["rows"] / 2 + 35 * question.mechanism().deviation * np.sign(np.arange(BINS) - 7.5)}
    parts, changed = honest.bounded(far)
    assert changed.all()
    found = {**far, **honest.joined(parts)}
    before, after = (one["errors"] - one["rows"] / 2 for one in (far, found))
    assert np.linalg.norm(after) < 0.4 * np.linalg.norm(before)
    np.testing.assert_allclose(after / np.linalg.norm(after), before / np.linalg.norm(before), atol=0.05)
    assert (4 * found["errors"] == np.floor(4 * found["errors"])).all()  # quarters, which add up exactly
    assert not honest.bounded(found)[1].any()


@pytest.mark.parametrize("name", ["row", "gaussian label"])
def test_one_of_many_moves_no_sum_far_and_as_they_come_it_does(name):
    question = QUESTIONS[name]
    honest = extreme(question, PARTIES)
    hostile = {field: array.copy() for field, array in honest.items()}
    hostile["errors"][3] = np.rint(hostile["rows"][3] / 2 - 35 * question.mechanism().deviation)
    totals = {}
    for bounded in (True, False):
        for kind, sent in (("honest", honest), ("hostile", hostile)):
            answers = summed(question, PARTIES, robustness=Robustness(bounded))
            assert answers.add(Submission(question.kind, np.arange(PARTIES), sent, question.promise())) == {}
            totals[bounded, kind] = answers.total("errors") - answers.total("rows") / 2
            told = answers.changes
            assert (told is None) == (not bounded)
    assert told is None
    moved = {one: np.linalg.norm(totals[one, "hostile"] - totals[one, "honest"]) for one in (True, False)}
    assert moved[True] < 0.35 * moved[False]
    np.testing.assert_array_equal(totals[True, "honest"], totals[False, "honest"])


def test_sums_do_not_depend_on_cohorts_and_rates_and_exact_answers_are_not_touched():
    question = QUESTIONS["row"]
    sent = extreme(question, PARTIES)
    sent["errors"][5] -= 3000.0 * np.sign(np.arange(BINS) - 7.5)
    sent["errors"][5] = np.clip(sent["errors"][5], -35 * question.mechanism().deviation, None).round()
    whole, parts = (summed(question, PARTIES) for _ in range(2))
    promise = question.promise()
    whole.add(Submission(question.kind, np.arange(PARTIES), sent, promise))
    for some in (np.arange(20, 30), np.arange(20)):
        parts.add(Submission(question.kind, some, {name: array[some] for name, array in sent.items()}, promise))
    np.testing.assert_array_equal(whole.total("errors"), parts.total("errors"))
    np.testing.assert_array_equal(whole.total("rows"), parts.total("rows"))
    for kind in ("off", "published"):
        other = marginals(kind, "label", "replace")
        assert summed(other, PARTIES).changes is None


TAKEN = {
    **{name: QUESTIONS[name] for name in ("row", "rows of rows", "label", "rows of labels")},
    "published": marginals("published", "label", "replace"),
    "off": marginals("off"),
}


def collected(question, arrays):
    """Causes of refusal, and the collector, after the answer of one of the parties with at most 60 rows."""
    collector = summed(question, 1)
    sent = Submission(question.kind, np.zeros(1, dtype=np.int64), arrays, promise_of(question))
    return collector.add(sent), collector


def answered(question, name="a purpose"):
    asked = replace(question, release=ReleaseId(name, question.release.queries, question.release.query))
    cohort = Cohort(Reference("support.two_class_parties:Parties").to_json(), 0, 1, 1)
    return dict(answering.answered(cohort, asked).arrays)


@pytest.mark.parametrize("question", TAKEN.values(), ids=TAKEN)
def test_honest_answers_are_taken_in(question):
    for trial in range(20):
        refused, collector = collected(question, answered(question, str(trial)))
        assert (refused, collector.answered) == ({}, 1)


@pytest.mark.parametrize("name", ["label", "rows of labels", "published", "off"])
@pytest.mark.parametrize(
    ("first", "second", "third"), [(-61, 61, 0), (1, 0, 1), ([-1, 0], 0, 0), (0.5, -0.5, 0)],
    ids=["negative", "too many", "of different rows", "fractional"],
)  # fmt: skip
def test_numbers_of_rows_without_noise_are_those_of_rows(name, first, second, third):
    """Changes of the numbers in the first two bins of two features, and in the first of the third."""
    arrays = answered(TAKEN[name])
    for bins, change in (([0, 5], first), ([1, 6], second), ([10], third)):
        arrays["rows"][0, bins] += change
    refused, collector = collected(TAKEN[name], arrays)
    assert (list(refused), collector.total("rows").any()) == ([0], False)


@pytest.mark.parametrize("name", ["row", "label", "off"])
@pytest.mark.parametrize("sign", [1, -1])
def test_errors_and_corrects_lie_within_the_reach_of_noise(name, sign):
    """More errors than rows are as impossible as fewer than none."""
    question = TAKEN[name]
    reach = 40 * (0.0 if name == "off" else question.mechanism().deviation)
    arrays = answered(question)
    arrays["errors"][0, 0] = sign * np.ceil(reach + 61)
    refused, _ = collected(question, arrays)
    assert list(refused) == [0]


MOST_SHARED_MARGINALS = 100
TERMS = {"quorum": 0.7, "servers": "two", "largest_bag": MOST_SHARED_MARGINALS}


def node():
    return Cohort(Reference(f"{Parties.__module__}:Parties").to_json(), 0, 6, 3)


def counted(question, summation=""):
    collector = Secure(question, plan(6, summation=summation, **TERMS))
    assert collector.add(answering.answered(node(), question)) == {}
    return collector


@pytest.mark.parametrize("noise", ["pure", "gaussian"])
@pytest.mark.parametrize("protect", ["row", "label"])
@pytest.mark.parametrize("asks", ["errors", "rows"])
def test_a_masked_sum_gives_the_total_of_plain_addition(noise, protect, asks):
    adjacency = "add_remove" if protect == "row" else "replace"
    question = marginals(noise, protect, adjacency, asks, contributors=4, seeded=True)
    if asks == "rows" and protect == "label":
        assert not question.shared  # numbers of rows are public
        return
    clear = counted(question)
    masked = counted(question, "scenarios.simulated.secure_aggregation:SimulatedSummation")
    np.testing.assert_array_equal(clear.total("rows"), masked.total("rows"))
    if asks == "errors":
        np.testing.assert_array_equal(clear.total("errors"), masked.total("errors"))
    sent = answering.answered(node(), question).arrays
    np.testing.assert_array_equal(clear.total("rows"), sent["rows"].sum(axis=0))
    assert clear.wholes == 6 / 4
    assert "masked sum" in masked.told[1]


def sent(errors, rows, question):
    arrays = {"errors": np.array([errors], dtype=float), "rows": np.array([rows], dtype=float)}
    return Submission("error_marginals", np.array([0]), arrays, None)


def test_counts_that_no_rows_can_have_or_that_might_wrap_around_are_refused_and_smaller_lies_are_not():
    question = marginals("pure", contributors=4)
    bins = question.bins.total
    for lie, refused in ((2.0**30, True), (-(2.0**30), True), (MOST_SHARED_MARGINALS, False)):
        collector = Secure(question, plan(6, **TERMS))
        collector.add(sent([lie] * bins, [MOST_SHARED_MARGINALS] * bins, question))
        if refused:
            with pytest.raises(FederationError):
                _ = collector.total("errors")
        else:
            assert collector.total("errors").any()
    with pytest.raises(InputError, match="64"):  # before anybody is asked
        Secure(marginals("pure", contributors=4, epsilon=100.0), plan(10**6, **{**TERMS, "largest_bag": 10**9}))
    question = marginals("pure", "label", "replace", contributors=4)
    sizes = question.bins.sizes
    fair = np.concatenate([[10, *[0] * (size - 1)] for size in sizes])
    for rows, refused in ((fair, 0), (fair + np.eye(len(fair))[0], 1), (fair * MOST_SHARED_MARGINALS, 1)):
        collector = Secure(question, plan(6, **TERMS))
        assert len(collector.add(sent(np.zeros(len(fair)), rows, question))) == refused
