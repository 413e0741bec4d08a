"""Sums of y x of all parties: their mean, its noise, and sums that no honest party can send.

Who collects a noisy sum, and what it promises, follows from whether its noise is shared. The noisy X'y over parties
that share its noise, and what each says openly of its rows. The noisy sum over all rows of parties that share its
noise.
"""

import numpy as np
import pytest
from support.summed_plans import plan
from support.two_class_parties import cohort
from support.two_class_questions import moment, row_moments

from aggregator.collectors.collectors import Secure, Summed, asked_privately
from aggregator.collectors.robust_sums import BOUNDED, Robustness
from aggregator.contract.ledger import LOCAL, summed
from aggregator.protocols.mean_operator.session import RowTotals
from federation.contract.errors import FederationError
from federation.contract.guarantee import Guarantee, NoGuarantee
from federation.contract.query import Submission
from federation.contract.randomness import NoiseBits
from parties.guard.answering import answered


def answers(parties=4, robustness=BOUNDED, asked=moment, **options):
    question = asked(**options)
    return Summed(question, parties, question.promise() if question.noise.aims else None, robustness)


def sent(collector, parties, sums, sizes, said=None):
    """Submit sums (P, d), the same for every draw."""
    question = collector.question
    arrays = {
        "size": np.array(sizes, dtype=np.float64),
        "sums": np.repeat(np.asarray(sums, dtype=np.float64)[:, None, :], question.draws, axis=1),
    }
    if "response" in question.fields():
        arrays["response"] = question.responding(arrays["size"]).astype(float) if said is None else np.array(said)
    promise = question.promise() if question.noise.aims else None
    return collector.add(Submission(question.kind, np.array(parties), arrays, promise))


def totals(collector):
    return RowTotals(collector.question, collector)


def test_the_estimate_is_a_mean_over_rows_and_errors_are_those_of_the_parties_that_answered():
    collector = answers(noise="off")
    sums = np.array([[1.0, 2.0, 0.0, 5.0], [-3.0, 0.0, 1.0, 5.0]])
    assert sent(collector, [0, 3], sums, [10, 30]) == {}
    assert collector.changes is None
    assert totals(collector).rows == 40
    np.testing.assert_array_equal(totals(collector).moments, sums.sum(axis=0)[None] / 40)
    assert totals(collector).noise_variance == 0
    own = answers()
    sent(own, [0, 1, 2], np.zeros((3, 4)), [10, 20, 20])
    alone = own.question.mechanism().variance()
    assert totals(own).noise_variance == pytest.approx(3 * alone / 50**2)
    deviation = answers().question.mechanism().variance() ** 0.5
    for reach, taken in ((39.9, True), (40.1, False)):
        assert (sent(answers(), [0], [[10 + reach * deviation, 0, 0, 0]], [10]) == {}) == taken
    collector = answers(noise="auto")
    below = collector.question.response_below
    sizes = [below - 1, below, 50]
    assert sent(collector, [0, 1, 3], np.zeros((3, 4)), sizes) == {}
    labels, sums = collector.question.response().label_variance, collector.question.mechanism().variance()
    assert totals(collector).noise_variance == pytest.approx(2 * sums / sum(sizes) ** 2)
    assert totals(collector).response_variance == pytest.approx((below - 1) * labels / sum(sizes) ** 2)
    collector = answers(noise="auto")
    said = [0.0, 1.0, 0.0, 1.0]
    assert list(sent(collector, [0, 1, 2, 3], np.zeros((4, 4)), [below - 1, below, below, below - 1], said)) == [0, 1]
    assert collector.present.tolist() == [2, 3]


def squares(*values):
    """Sums over private rows that are zero but for the last number, that of y'y."""
    return np.outer(values, np.eye(1, row_moments().numbers, row_moments().numbers - 1))


@pytest.mark.parametrize(("asked", "sums", "taken"), [
    *((moment, [[0.0, 0.0, 0.0, largest]], abs(largest) <= 10) for largest in (10.0, -10.0, 10.001, -10.001)),
    # X'X, X'y and y'y of one row have norm sqrt(7) at most.
    (row_moments, squares(26.45), True), (row_moments, squares(-26.45), True), (row_moments, squares(26.5), False),
])  # fmt: skip
def test_without_noise_no_entry_exceeds_what_the_rows_can_add(asked, sums, taken):
    collector = answers(asked=asked, noise="off")
    assert (sent(collector, [1], sums, [10]) == {}) == taken
    assert collector.answered == taken


@pytest.mark.parametrize(("asked", "size"), [
    (asked, size) for asked, most in ((moment, 50.0), (row_moments, 67.0)) for size in (2.5, 0.0, most + 1, np.nan)
])  # fmt: skip
def test_numbers_of_rows_are_whole_and_in_range(asked, size):
    collector = answers(asked=asked, noise="off")
    assert list(sent(collector, [0, 1], np.zeros((2, collector.question.numbers)), [size, 3])) == [0]
    assert totals(collector).rows == 3


def test_private_rows_have_the_noise_of_the_parties_that_answered_which_takes_an_entry_forty_deviations_further():
    collector = answers(asked=row_moments, noise="off")
    assert sent(collector, [0, 3], squares(4.0, 6.0), [10, 30]) == {}
    assert (totals(collector).rows, collector.total("sums")[0, -1], collector.variance) == (40, 10.0, 0.0)
    collector = answers(asked=row_moments)
    sent(collector, [0, 1, 2], squares(0.0, 0.0, 0.0), [10, 20, 20])
    alone = collector.question.mechanism().variance()
    assert collector.variance == pytest.approx(3 * alone)
    assert totals(collector).response_variance == 0
    for reach, taken in ((39.9, True), (40.1, False)):
        longest = squares(10 * 7**0.5 + reach * alone**0.5)
        assert (sent(answers(asked=row_moments), [0], longest, [10]) == {}) == taken


def test_summed_responses_reach_as_far_as_all_labels_and_noise_on_the_sum_takes_no_part():
    reach = answers(noise="auto").question.response().reach
    for noise in ("auto", "randomised_response"):
        for entry, taken in ((3 * reach, True), (-3.001 * reach, False)):
            assert (sent(answers(noise=noise), [0], [[0, 0, 0, entry]], [3]) == {}) == taken
    collector = answers(parties=40, noise="auto")
    size = collector.question.response_below - 1
    longest = np.full((1, 4), size * collector.question.response().reach)
    assert sent(collector, [0], longest, [size]) == {}
    assert collector.changes.scaled == 1
    assert np.linalg.norm(collector.total("sums")) <= size * collector.question.response().reach * (1 + 1e-5)


def noisy(question, parties, hostile=()):
    """Sums (P, d) of parties with 10 rows, all the same, of whom some answer the opposite as far as is accepted."""
    exact = 10 * np.eye(1, question.numbers)[0]
    noise = question.mechanism()
    sums = np.concatenate([noise.release(exact, NoiseBits(1, "sums", party)) for party in range(parties)])
    sums[list(hostile)] = -exact - 39 * question.mechanism().variance() ** 0.5 * np.eye(1, question.numbers)
    return sums


@pytest.mark.parametrize("noise", ["gaussian", "pure", "laplace"])
@pytest.mark.parametrize("hostile", [(4,), (4, 9, 30, 31)])
def test_hostile_sums_are_scaled_and_clipped_and_honest_ones_are_as_they_were(noise, hostile):
    totals = {}
    for robust in (True, False):
        for chosen in ((), hostile):
            collector = answers(parties=40, noise=noise, robustness=Robustness(robust))
            assert sent(collector, range(40), noisy(collector.question, 40, chosen), [10] * 40) == {}
            totals[robust, bool(chosen)] = collector.total("sums")
            if robust and chosen:
                assert collector.changes.scaled == len(hostile)
    np.testing.assert_array_equal(totals[True, False], totals[False, False])
    deviation = collector.question.mechanism().variance() ** 0.5
    cost = {robust: np.linalg.norm(totals[robust, True] - totals[robust, False]) for robust in (True, False)}
    assert cost[False] > 38 * deviation * len(hostile)
    assert cost[True] < (14 * deviation + 20) * len(hostile)


@pytest.mark.parametrize(("contributors", "collector"), [(0, Summed), (2, Secure)])
def test_noise_is_each_partys_or_shared(make_plan, contributors, collector):
    plan, question = make_plan(parties=4, quorum=0.9), moment("gaussian", contributors=contributors)
    asked, promised = asked_privately(question, None, plan)
    assert asked.question is question
    assert type(asked.collector) is collector
    assert isinstance(promised, Guarantee)
    whose = summed(plan, question.mechanism().additive) if contributors else LOCAL
    assert whose in promised.assumptions
    asked, promised = asked_privately(moment("off"), None, plan)  # without noise
    assert isinstance(promised, NoGuarantee)
    assert type(asked.collector) is Summed


QUESTION = row_moments(contributors=4, second=False, protect="label")


def collected(change=None):
    collector, sent = Secure(QUESTION, plan(6, largest_bag=67)), answered(cohort(count=3), QUESTION)
    if change is not None:
        change(sent.arrays)
    return collector, collector.add(sent), sent


def test_open_sums_and_shares_are_added():
    collector, refused, sent = collected()
    assert refused == {}
    for name in ("gram", "row_sum", "weight", "size", "sums"):
        np.testing.assert_array_equal(collector.total(name), sent.arrays[name].sum(axis=0))
    assert 0 < collector.total("weight") <= totals(collector).rows
    assert collector.answered == 2  # one of three has texts for labels
    assert collector.variance == pytest.approx(2 / 4 * QUESTION.mechanism().variance())


@pytest.mark.parametrize(("name", "place", "of", "plus", "factor"), [
    ("gram", (0, 1), "gram", 1.0, 1), ("gram", (), "gram", 0.0, -1), ("weight", (), "size", 1.0, 1),
    ("row_sum", (), "size", 0.0, 1),
], ids=["lopsided", "indefinite", "heavy", "long"])  # fmt: skip
def test_what_no_rows_can_say_is_refused(name, place, of, plus, factor):
    def change(arrays):
        value = arrays[of][1, *place] if of == name else arrays[of][1]
        arrays[name][1, *place] = factor * value + plus

    _, refused, sent = collected(change)
    assert list(refused) == [sent.parties[1]]


QUESTION_SHARED_MOMENTS = moment("gaussian", contributors=2)
STEP = QUESTION_SHARED_MOMENTS.mechanism().additive.step


def shared_moments_collected(steps, second=10.0) -> Secure:
    """After answers about 10 rows each, but for those of the second party."""
    collector = Secure(QUESTION_SHARED_MOMENTS, plan(4, largest_bag=67))
    sent(collector, range(len(steps)), np.multiply(steps, STEP), [10.0, second, 10.0][: len(steps)])
    return collector


def test_means_and_the_variance_are_of_all_shares_and_only_great_lies_are_refused():
    found = shared_moments_collected([[1, 2, 3, 4]] * 3)
    np.testing.assert_allclose(totals(found).moments[0], np.array([3, 6, 9, 12]) * STEP / 30)
    assert found.variance == pytest.approx(3 / 2 * QUESTION_SHARED_MOMENTS.mechanism().variance())
    assert totals(found).noise_variance == pytest.approx(found.variance / 30**2)
    assert totals(found).response_variance == 0
    assert shared_moments_collected([[0, 0, 0, 0]] * 2, 10.5).answered == 1  # numbers of rows are whole
    beyond = 1e6 / STEP
    with pytest.raises(FederationError):
        shared_moments_collected([[beyond, 0, 0, 0], [0, 0, 0, 0]]).total("sums")
    assert shared_moments_collected([[15 / STEP, 0, 0, 0], [0, 0, 0, 0]]).total("sums")[0, 0] == pytest.approx(15)
