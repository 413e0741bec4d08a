"""What honest label counts with noise reach in bags: against draws, and kept by whatever is sent.

The noisy totals of bags that are the same at all parties: of all shares, and within what honest ones can have.
"""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.questions import QUESTIONS
from support.summed_plans import plan

from aggregator.collectors.collectors import Kept, Secure
from aggregator.protocols.class_ratio.session import shared_bags
from federation.contract.errors import FederationError, InputError
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from federation.contract.honest import REACH
from federation.contract.query import ReleaseId, Submission
from federation.contract.randomness import NoiseBits
from federation.features.feature_map import FeatureMap, with_fourier
from federation.features.steps import UnitNorm
from federation.mechanisms.counts.calibration import calibrate
from federation.queries.bags import (
    LARGEST_COUNT,
    Bags,
    CountRange,
    CountsNoise,
    CountsQuestion,
    EmbeddingsQuestion,
    HonestBags,
    JointNoise,
    NoisyEmbeddingsQuestion,
)

BAGS = Bags(2, 3)
RELEASE = ReleaseId("test")
COUNTS = CountsQuestion(CountsNoise("pure", 1.0, 0.0), BAGS, release=RELEASE, draws=2, seeded=True)
PROMISE = Guarantee(1.0, 0.0, Unit.LABEL, Adjacency.REPLACE, "lattice_laplace")


def answer(parties, sizes, counts, guarantee=PROMISE):
    arrays = {"sizes": np.array(sizes, dtype=float), "counts": np.array(counts, dtype=float)}
    return Submission("counts", np.array(parties, dtype=np.int64), arrays, guarantee)


def good(party=0):
    return answer([party], [[4, 0]], [[[[1, 2, 1], [0, 0, 0]], [[-1, 4, 1], [0, 0, 0]]]])


def kept(question, promise, *reaches):
    """Collects answers of three parties with bags of 10 rows at most, and noise of such reaches."""
    asked = copy.copy(question)
    object.__setattr__(asked, "honest", lambda public: HonestBags(10, *reaches))
    return Kept(asked, 3, promise)


def collector():
    return kept(COUNTS, PROMISE, 2.0)


@pytest.mark.parametrize(("sizes", "counts"), [
    ([[4, 0]], [[[[1, 2, 2], [0, 0, 0]]] * 2]),  # counts that do not sum to the size
    ([[4, 0]], [[[[1, 2, 1], [0, 1, 0]]] * 2]),  # counts of a bag that is not there
    ([[4.5, 0]], [[[[1, 2, 1.5], [0, 0, 0]]] * 2]),
    ([[11, 0]], [[[[11, 0, 0], [0, 0, 0]]] * 2]),  # more than the declared largest bag
    ([[0, 0]], [np.zeros((2, 2, 3))]),  # no bag at all
    ([[4, 0]], [np.full((2, 2, 3), np.nan)]), ([[LARGEST_COUNT, 0]], [np.full((2, 2, 3), LARGEST_COUNT)]),
    ([[-1, 4]], [[[[-1, 0, 0], [4, 0, 0]]] * 2]),
    ([[4, 0]], [[[[-3, 6, 1], [0, 0, 0]], [[1, 2, 1], [0, 0, 0]]]]),  # further out than noise ever goes
    ([[4, 0]], [[[[-1.5, 6.5, -1], [0, 0, 0]], [[1, 2, 1], [0, 0, 0]]]]),
    ([[4, 0]], [[[[1, 2, 1], [1, -1, 0]]] * 2]),
])  # fmt: skip
def test_answers_out_of_form_cost_their_own_party_only_and_others_are_kept_whatever_their_noise(sizes, counts):
    found = collector()
    both = answer([2, 1], [good().arrays["sizes"][0], sizes[0]], [good().arrays["counts"][0], counts[0]])
    assert list(found.add(both)) == [1]
    assert found.answered == 1
    assert found.array("sizes").tolist() == [[0, 0], [0, 0], [4, 0]]
    assert found.array("counts")[2, 1, 0].tolist() == [-1, 4, 1]
    assert not found.array("counts")[1].any()


def test_bags_count_where_all_answers_agree_about_their_size_and_counts_out_of_a_bag_are_refused():
    exact = kept(COUNTS, PROMISE)
    assert exact.add(answer([1], [[4, 0]], [[[[0, 4, 0], [0, 0, 0]]] * 2])) == {}
    assert list(exact.add(good(0))) == [0]
    assert exact.add(answer([], np.zeros((0, 2)), np.zeros((0, 2, 2, 3)))) == {}
    counts = collector()
    counts.add(good(0))
    counts.add(good(2))
    question = EmbeddingsQuestion(BAGS, FeatureMap(2, (UnitNorm(),)))
    means = kept(question, None)
    arrays = {"sizes": np.array([[4.0, 0], [4, 0], [5, 0]]), "means": np.zeros((3, 2, 2))}
    assert means.add(Submission("embeddings", np.arange(3), arrays)) == {}
    party, number = shared_bags(counts, means)
    assert (party.tolist(), number.tolist()) == ([0], [0])
    assert [found.tolist() for found in shared_bags(counts, means, least=4)] == [[0], [0]]
    assert [found.tolist() for found in shared_bags(counts, means, least=5)] == [[], []]


@pytest.mark.parametrize("noisy", [False, True])
def test_means_longer_than_rows_can_be_are_refused(noisy):
    waves = with_fourier(FeatureMap(2, (UnitNorm(),)), 1.0, 4, seed=1)
    if noisy:
        noise = JointNoise("gaussian", 1.0, 0.1)
        question = NoisyEmbeddingsQuestion(noise, BAGS, waves, 1.0, release=RELEASE, draws=2, seeded=True)
        draws, reach = (2,), 6.0
    else:
        question, draws, reach = EmbeddingsQuestion(BAGS, waves), (), 0.0
    longest = 1 + reach * 4**0.5 / 4  # noise in each of four features of the sum of four rows
    for length, refused in ((longest, []), (longest + 1e-6, [1])):
        means = np.zeros((2, *draws, 2, 4))
        means[1, ..., 0, :] = length / 2  # of four equal entries
        arrays = {"sizes": np.array([[4.0, 0]] * 2), "means": means}
        if noisy:
            arrays["counts"] = np.tile(good().arrays["counts"], (2, 1, 1, 1))
        found = kept(question, None, 2.0, reach)
        assert list(found.add(Submission(question.kind, np.arange(2), arrays))) == refused
        assert found.add(Submission(question.kind, np.arange(0), {name: a[:0] for name, a in arrays.items()})) == {}


RANGES = {
    (kind, classes): CountRange(calibrate(kind, classes=classes, epsilon=1.0, delta=1e-5), 3)
    for kind in ("gaussian", "laplace", "pure", "independent_laplace")
    for classes in (2, 4)
}
SIZES = np.array([[30.0, 12.0, 0.0]])


@pytest.mark.parametrize(("kind", "classes"), RANGES)
def test_no_honest_counts_are_changed(kind, classes):
    mechanism = calibrate(kind, classes=classes, epsilon=1.0, delta=1e-5)
    sent = np.zeros((1, 3000, 3, classes))
    for bag, size in enumerate(SIZES[0][:2]):
        exact = np.eye(classes, dtype=int)[0] * int(size)
        sent[0, :, bag] = mechanism.release(exact, NoiseBits(1, "counts", bag), 3000)
    found, changed = RANGES[kind, classes].bounded(sent, SIZES)
    np.testing.assert_array_equal(found, sent)
    assert not changed.any()


@given(st.sampled_from([*RANGES]), st.integers(0, 10**6), st.floats(1.0, 1e6))
def test_counts_far_out_come_near_and_sum_to_their_bags(key, seed, size):
    classes = key[1]
    sent = size * np.random.default_rng(seed).normal(size=(1, 2, 3, classes))
    sent += (SIZES[0][:, None] - sent.sum(axis=3, keepdims=True)) / classes
    sent[:, :, 2] = 0.0
    found, changed = RANGES[key].bounded(sent, SIZES)
    np.testing.assert_allclose(found.sum(axis=3), np.broadcast_to(SIZES, (1, 2, 3)), atol=1e-6 * size)
    assert np.abs(found).max() <= 2 * (30 + 80 * 2 + 1)  # no law here has noise beyond 80
    if not changed.any():
        np.testing.assert_array_equal(found, sent)


COUNTS_SHARED_BAGS, ROWS = (replace(QUESTIONS[kind], contributors=2) for kind in ("count_totals", "embedding_totals"))


def collected(question=COUNTS_SHARED_BAGS, parties=3, **changes):
    """With these numbers in the first place of a field at every party, and ones elsewhere."""
    arrays = {name: np.ones((parties, *field.shape)) for name, field in question.fields().items()}
    for name, first in changes.items():
        arrays[name].reshape(parties, -1)[:, 0] = first
    collector = Secure(question, plan(4, bags=2))
    collector.add(Submission(question.kind, np.arange(parties), arrays, question.promise()))
    return collector


def test_totals_are_exact_with_the_noise_of_all_shares_and_weighted_counts_reach_as_far_as_their_weight_says():
    step = COUNTS_SHARED_BAGS.mechanism().step
    found = collected(sizes=20, counts=[3 * step, 5 * step, -1 * step])
    assert found.total("sizes").tolist() == [60, 3]
    assert found.total("counts")[0, 0].tolist() == [7 * step, 3, 3]
    assert found.variance == pytest.approx(3 / 2 * COUNTS_SHARED_BAGS.mechanism().variance())
    heavy = replace(ROWS, label_weight=100.0)
    assert collected(heavy, counts=4000.0).total("counts").ravel()[0] == pytest.approx(12_000, abs=1)
    with pytest.raises(FederationError):
        collected(ROWS, counts=4000.0).total("counts")
    with pytest.raises(InputError, match="64"):
        Secure(COUNTS_SHARED_BAGS, plan(10**6, bags=2, largest_bag=10**9))


@pytest.mark.parametrize(("question", "name"), [
    (COUNTS_SHARED_BAGS, "sizes"), (COUNTS_SHARED_BAGS, "counts"), (ROWS, "counts"), (ROWS, "sums"),
])  # fmt: skip
def test_noise_reaches_forty_deviations_beyond_what_rows_can_and_further_totals_are_refused(question, name):
    """All parties have 50 rows of a bag at most; sums go below zero as far as they go above, counts do not."""
    noise, rows = REACH * math.sqrt(collected(question).variance), 3 * 50.0
    least = -rows if name == "sums" else 0.0
    for edge, outwards in ((rows + noise, 1), (least - noise, -1)):
        collected(question, **{name: (edge - outwards) / 3}).total(name)
        for refused in ((edge + outwards) / 3, 1e6 * outwards):
            with pytest.raises(FederationError):
                collected(question, **{name: refused}).total(name)
    for within in {"sizes": (0, 50), "counts": (-1, 50), "sums": (-50, 50)}[name]:
        assert collected(question, **{name: within}).total(name).ravel()[0] == pytest.approx(3 * within, abs=1e-3)
