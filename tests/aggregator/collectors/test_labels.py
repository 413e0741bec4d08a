"""What honest sums X'y with noise reach, in any shape of rows: against draws, directions, and what is sent instead.

Sums that do not depend on the order: against rational arithmetic, in any groups and any order. Answers about labels of
rows and of bags: honest ones are taken, and what no honest party can say is refused. Sums over public rows and real
labels: what an honest party can say is taken, and added up in any order.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from support.label_answers import PARTIES
from support.label_answers import question as label_answers_question
from support.linear_labels import RANGE

from aggregator.collectors.collectors import ExactTotal, Kept, Summed
from aggregator.protocols.bag_regression import NoisyWeightedLLP, WeightedLBA
from aggregator.protocols.label_sums import NoisyLabelSums
from aggregator.protocols.private_labels import PrivateLabels
from federation.contract.guarantee import Guarantee
from federation.contract.plugins import Reference
from federation.contract.query import ReleaseId, Submission
from federation.contract.randomness import NoiseBits
from federation.features.feature_map import FeatureMap
from federation.mechanisms.labels.shaped_gaussian import fit_shape
from federation.queries import labels as label_sum_range
from federation.queries.labels import HonestMoments, LabelledRows, LabelSumsNoise, LabelSumsQuestion, _gauges
from parties.guard.answering import answered
from parties.party_data.cohort import Cohort

SIZE, WIDTH = 40, 4
ROWS = np.random.default_rng(2).normal(size=(SIZE, WIDTH)) * [1.0, 5.0, 0.1, 1.0]
ROWS[:, 3] = 1.0  # as of a constant column


def question(noise="gaussian", shape="optimal"):
    rows = LabelledRows(FeatureMap(WIDTH, ()), -1.0, 5.0, 50)
    return LabelSumsQuestion(LabelSumsNoise(noise, 1.0, 1e-5), rows, shape, release=ReleaseId("sums"))


def sent(asked, moments):
    mechanism = asked.mechanism(ROWS)
    return {
        "size": np.array([float(SIZE)]),
        "gram": (ROWS.T @ ROWS)[None],
        "row_sum": ROWS.sum(axis=0)[None],
        "covariance": mechanism.covariance()[None],
        "moment": np.asarray(moments)[None],
    }


def bounded(asked, arrays):
    """The sums within the range of honest ones, and whose were not."""
    parts, changed = HonestMoments(asked).bounded(arrays)
    return parts["moment"], changed


def longest(direction):
    """The labels that take X'y furthest in a direction."""
    return np.where(ROWS @ direction > 0, 5.0, -1.0)


@pytest.mark.parametrize("noise", ["gaussian", "pure"])
@pytest.mark.parametrize("shape", ["optimal", "whitened", "isotropic"])
def test_no_honest_sum_is_changed(noise, shape):
    asked = question(noise, shape)
    mechanism = asked.mechanism(ROWS)
    for key in range(4):
        labels = longest(np.random.default_rng(key).normal(size=WIDTH))
        moments = mechanism.release(ROWS, labels, NoiseBits(key, "sums"), 500)
        kept, changed = bounded(asked, sent(asked, moments))
        np.testing.assert_array_equal(kept[0], moments)
        assert not changed.any()


def test_honest_sums_are_changed_as_often_as_may_be_at_most(monkeypatch):
    monkeypatch.setattr(label_sum_range, "BEYOND", 0.2)
    asked = question()
    moments = asked.mechanism(ROWS).release(ROWS, longest(np.eye(WIDTH)[1]), NoiseBits(1, "sums"), 3000)
    kept, changed = bounded(asked, sent(asked, moments))
    assert changed.all()
    share = (kept[0] != moments).any(axis=1).mean()
    assert 0.0 < share <= 0.2


def test_a_longer_sum_is_scaled_to_the_range_and_a_label_as_far_out_as_noise_can_take_it_is_taken():
    asked = question()
    middle = 2.0 * ROWS.sum(axis=0)
    moments = middle + 1e6 * np.random.default_rng(1).normal(size=(5, WIDTH))
    kept, changed = bounded(asked, sent(asked, moments))
    assert changed.all()
    deviations = np.sqrt(np.diagonal(asked.mechanism(ROWS).covariance()))
    largest = 3.0 * np.abs(ROWS).sum(axis=0) + 8 * deviations
    assert (np.abs(kept[0] - middle) <= 1.5 * largest).all()
    again, changed = bounded(asked, sent(asked, kept[0]))
    np.testing.assert_allclose(again, kept, rtol=1e-9)
    assert causes(LABELS, "labels", (0, 5), RANGE[1] + 39 * 2**0.5 * (RANGE[1] - RANGE[0]) / 3.0) == {}


@given(st.integers(0, 10**6), st.integers(1, 5))
def test_gauges_are_those_of_support_functions(key, width):
    """The largest over directions of v'm over how far the sum of the ellipsoids reaches there; near it on the grid."""
    random = np.random.default_rng(key)
    first, second = (random.normal(size=(width, width + 1)) for _ in range(2))
    shapes = [one @ one.T for one in (first, second)]
    vectors = random.normal(size=(3, width))
    directions = random.normal(size=(4000, width))
    reach = sum(np.sqrt(np.einsum("ij,jk,ik->i", directions, shape, directions)) for shape in shapes)
    below = ((directions @ vectors.T) / reach[:, None]).max(axis=0)  # never above the largest
    found = _gauges(vectors, *shapes)
    np.testing.assert_allclose(_gauges(vectors * 7, *shapes), 7 * found, rtol=1e-9)
    assert (found >= below * (1 - 0.02)).all()
    on_border = np.array([shapes[0] @ v / np.sqrt(v @ shapes[0] @ v) + shapes[1] @ v / np.sqrt(v @ shapes[1] @ v)
                          for v in directions[:20]])  # fmt: skip
    border = _gauges(on_border, *shapes)
    assert (border <= 1 + 1e-6).all()
    assert (border >= 0.98).all()
    alone = _gauges(np.array([[2.0, 0.0], [0.0, 6.0]]), np.diag([4.0, 9.0]), np.zeros((2, 2)))
    np.testing.assert_allclose(alone, [1.0, 2.0], rtol=2e-3)


def test_shapes_that_are_indefinite_by_rounding_cost_nobody_else_an_answer():
    """A party may send X'X and a covariance whose least eigenvalue is below 0 by what rounding is allowed."""
    asked, odd = question(), np.eye(WIDTH)
    odd[0, 1] = odd[1, 0] = 1 + 3e-9
    assert np.linalg.eigvalsh(odd)[0] < -2e-9
    good = sent(asked, asked.mechanism(ROWS).release(ROWS, np.zeros(SIZE), NoiseBits(1, "sums"), 1))
    zeros = {"moment": np.full((1, 1, WIDTH), 20.0), "row_sum": np.zeros((1, WIDTH))}
    bad = {**zeros, "size": np.array([float(SIZE)]), "gram": 10 * odd[None], "covariance": 1e-2 * odd[None]}

    def alone(arrays):
        only = Summed(asked, 1, asked.promise())
        assert only.add(Submission(asked.kind, np.array([0]), arrays, asked.promise())) == {}
        return only.total("moment")

    answers = Summed(asked, 2, asked.promise())
    arrays = {name: np.concatenate([good[name], bad[name]]) for name in good}
    assert answers.add(Submission(asked.kind, np.array([0, 1]), arrays, asked.promise())) == {}
    assert np.isfinite(answers.total("moment")).all()
    np.testing.assert_allclose(answers.total("moment") - alone(bad), good["moment"][0], rtol=1e-9)


NUMBERS = st.floats(-(2.0**160), 2.0**160)


def total(*groups):
    found = ExactTotal(groups[0].shape[1:])
    for group in groups:
        found.add(group)
    return found.value


def exact(column):
    """The sum in rational arithmetic, rounded once."""
    return float(sum(map(Fraction, column), Fraction(0)))


@given(arrays(np.float64, (7, 2), elements=NUMBERS), st.permutations(range(7)), st.integers(1, 6))
def test_any_order_in_any_groups_has_the_same_bits_and_these_are_right(values, order, cut):
    found = total(values)
    shuffled = values[np.array(order)]
    assert total(shuffled[:cut], shuffled[cut:]).tobytes() == found.tobytes()
    assert total(*(one[None] for one in shuffled)).tobytes() == found.tobytes()
    np.testing.assert_allclose(found, [exact(column) for column in values.T], rtol=1e-15, atol=2.0**-950)


def test_what_cancels_leaves_what_was_small_in_the_memory_of_a_few_arrays():
    random = np.random.default_rng(1)
    large, small = random.normal(size=(500, 3)) * 1e30, random.normal(size=(40, 3))
    found = total(large, small, -large[::-1])
    np.testing.assert_allclose(found, [exact(column) for column in small.T], rtol=1e-15)
    assert np.abs((large.sum(axis=0) + small.sum(axis=0)) - large.sum(axis=0) - found).max() > 1  # others lose it
    for values in (np.zeros((0, 2)), np.zeros((3, 2)), np.full((2, 2), -0.0)):
        assert total(values).tobytes() == np.zeros(2).tobytes()
    assert total(np.array([1.5, 2.25])) == 3.75
    found, random = ExactTotal((5,)), np.random.default_rng(2)
    for _ in range(200):
        found.add(random.normal(size=(100, 5)))
    assert len(found._places) <= 5


LABELS, BAGS = PrivateLabels(noise="laplace"), NoisyWeightedLLP(size=8)
WEIGHTED, EXACT = WeightedLBA(size=8), PrivateLabels(noise="off")


COHORT = Cohort(Reference("support.linear_labels:Parties").to_json(), 0, PARTIES, 1)


def causes(options, field=None, place=(), value=None):
    """Why answers are refused, by party, after a number of the third party has changed, or lost a half."""
    asked = label_answers_question(options, epsilon=3.0, draws=2)
    submission = answered(COHORT, asked)
    arrays = {name: array.copy() for name, array in submission.arrays.items()}
    if field is not None:
        arrays[field][2, *place] = arrays[field][2, *place] - 0.5 if value is None else value
    promised = asked.promise()
    answers = Kept(asked, PARTIES, promised if isinstance(promised, Guarantee) else None)
    found = answers.add(replace(submission, arrays=arrays))
    assert answers.answered == PARTIES - len(found)
    for name, array in arrays.items():
        np.testing.assert_array_equal(answers.array(name)[answers.present], array[answers.present])
    return found


FAR = 40 * 2**0.5 * (RANGE[1] - RANGE[0]) + RANGE[1] + 1  # further than noise can take a label
CHANGED = {  # numbers of the third party, by what they make of its answer
    "a label far out": ("labels", (0, 5), FAR),
    "a label without a row": ("labels", (1, -1), 1.0),
    "a row beyond its number": ("rows", (-1, 0), 1.0),
    "half a row": ("size", (), None),
    "a sum far out": ("sums", (0, 0), 1e9),
    "a weight that is no sign": ("weights", (0, 0, 0), 0.5),
    "a weighted sum far out": ("label_sums", (0, 0), 1e9),
    "half a bag": ("formed", (), None),
}


@pytest.mark.parametrize(("options", "change"), [
    (LABELS, "a label far out"), (LABELS, "a label without a row"), (LABELS, "a row beyond its number"),
    (LABELS, "half a row"), (EXACT, "a label far out"), (BAGS, "a sum far out"), (BAGS, "a weight that is no sign"),
    (BAGS, "half a bag"), (WEIGHTED, "half a bag"), (WEIGHTED, "a weighted sum far out"),
], ids=lambda one: one if isinstance(one, str) else type(one).__name__)  # fmt: skip
def test_honest_answers_are_kept_as_they_came_and_what_no_honest_party_can_say_costs_nobody_else(options, change):
    assert causes(options) == {}
    assert causes(options, *CHANGED[change]) == {2: "answer refused: values outside the declared range"}


@pytest.mark.parametrize("shape", ["optimal", "whitened", "isotropic"])
@pytest.mark.parametrize("noise", ["gaussian", "pure"])
def test_honest_sums_of_rows_with_empty_equal_and_rare_columns_are_taken(shape, noise):
    random = np.random.default_rng(1)
    rows = random.normal(size=(400, 8))
    rows[:, 2] = 0.0  # never seen at this party
    rows[:, 3] = rows[:, 4]
    rows[:, 5] = 0.0
    rows[7, 5] = 30.0  # seen once, and then far out
    labels = random.uniform(0, 52, 400)
    declared = LabelledRows(FeatureMap(8, ()), 0.0, 52.0, 400)
    known = LabelSumsNoise(noise, 0.5, 1e-6)
    asked = LabelSumsQuestion(known, declared, shape, release=ReleaseId("a release"), draws=50, seeded=True)
    mechanism = asked.mechanism(rows)
    moment = mechanism.release(rows, labels, NoiseBits(1, "test"), 50)
    assert fit_shape(rows, shape).transform.shape[1] < 8
    arrays = {"size": np.array([400.0]), "gram": (rows.T @ rows)[None], "moment": moment[None]}
    arrays |= {"row_sum": rows.sum(axis=0)[None], "covariance": mechanism.covariance()[None]}
    answers = Summed(asked, 1, asked.promise())
    assert answers.add(Submission("label_sums", np.array([0]), arrays, asked.promise())) == {}
    assert answers.answered == 1


def test_the_sums_are_those_of_all_who_answered_whoever_answers_first_and_with_whom():
    asked = label_answers_question(NoisyLabelSums(), draws=3)
    sent = answered(COHORT, asked)
    totals = []
    for groups in ([range(PARTIES)], [[4], [0, 5], [1, 2], [3]], [[one] for one in reversed(range(PARTIES))]):
        answers = Summed(asked, PARTIES, asked.promise())
        for group in groups:
            chosen = np.flatnonzero(np.isin(sent.parties, list(group)))
            arrays = {name: array[chosen] for name, array in sent.arrays.items()}
            assert answers.add(replace(sent, parties=sent.parties[chosen], arrays=arrays)) == {}
        totals.append({name: answers.total(name).tobytes() for name in asked.fields()})
        for name in ("size", "gram", "row_sum", "covariance"):
            np.testing.assert_allclose(answers.total(name), sent.arrays[name].sum(axis=0), rtol=1e-12)
    assert totals[0] == totals[1] == totals[2]
