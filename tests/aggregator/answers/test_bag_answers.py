import numpy as np
import pytest

from aggregator.collectors.bags import BagAnswers, shared_bags
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from federation.contract.query import ReleaseId, Submission
from federation.features.feature_map import FeatureMap, with_fourier
from federation.features.steps import UnitNorm
from federation.queries.bags import (
    LARGEST_COUNT,
    Bags,
    CountsNoise,
    CountsQuestion,
    EmbeddingsQuestion,
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


def collector():
    return BagAnswers(COUNTS, 3, largest=10, promise=PROMISE, count_reach=2.0)


def test_answers_of_the_declared_form_are_kept_whatever_their_noise():
    found = collector()
    assert found.add(good(2)) == {}
    assert found.answered == 1
    assert found.sizes.tolist() == [[0, 0], [0, 0], [4, 0]]
    assert found.array("counts")[2, 1, 0].tolist() == [-1, 4, 1]


@pytest.mark.parametrize(
    ("sizes", "counts"),
    [
        ([[4, 0]], [[[[1, 2, 2], [0, 0, 0]]] * 2]),  # counts that do not sum to the size
        ([[4, 0]], [[[[1, 2, 1], [0, 1, 0]]] * 2]),  # counts of a bag that is not there
        ([[4.5, 0]], [[[[1, 2, 1.5], [0, 0, 0]]] * 2]),
        ([[11, 0]], [[[[11, 0, 0], [0, 0, 0]]] * 2]),  # more than the declared largest bag
        ([[0, 0]], [np.zeros((2, 2, 3))]),  # no bag at all
        ([[4, 0]], [np.full((2, 2, 3), np.nan)]),
        ([[LARGEST_COUNT, 0]], [np.full((2, 2, 3), LARGEST_COUNT)]),
        ([[-1, 4]], [[[[-1, 0, 0], [4, 0, 0]]] * 2]),
        ([[4, 0]], [[[[-3, 6, 1], [0, 0, 0]], [[1, 2, 1], [0, 0, 0]]]]),  # further out than noise ever goes
        ([[4, 0]], [[[[-1.5, 6.5, -1], [0, 0, 0]], [[1, 2, 1], [0, 0, 0]]]]),
        ([[4, 0]], [[[[1, 2, 1], [1, -1, 0]]] * 2]),
    ],
)
def test_answers_out_of_form_cost_their_own_party_only(sizes, counts):
    found = collector()
    both = answer([0, 1], [good().arrays["sizes"][0], sizes[0]], [good().arrays["counts"][0], counts[0]])
    assert list(found.add(both)) == [1]
    assert found.answered == 1
    assert not found.array("counts")[1].any()


@pytest.mark.parametrize(
    "guarantee",
    [
        None,
        Guarantee(2.0, 0.0, Unit.LABEL, Adjacency.REPLACE, "lattice_laplace"),
        Guarantee(1.0, 0.1, Unit.LABEL, Adjacency.REPLACE, "lattice_laplace"),
        Guarantee(1.0, 0.0, Unit.ROW, Adjacency.REPLACE, "lattice_laplace"),
    ],
)
def test_an_answer_under_another_guarantee_is_refused(guarantee):
    found = collector()
    refused = found.add(answer([0], good().arrays["sizes"], good().arrays["counts"], guarantee))
    assert "guarantee" in refused[0]
    assert found.answered == 0


def test_counts_out_of_a_bag_are_refused_without_noise():
    exact = BagAnswers(COUNTS, 3, largest=10, promise=PROMISE)
    assert exact.add(answer([1], [[4, 0]], [[[[0, 4, 0], [0, 0, 0]]] * 2])) == {}
    assert list(exact.add(good(0))) == [0]
    assert exact.add(answer([], np.zeros((0, 2)), np.zeros((0, 2, 2, 3)))) == {}


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
        found = BagAnswers(question, 2, 10, None, count_reach=2.0, sum_reach=reach)
        assert list(found.add(Submission(question.kind, np.arange(2), arrays))) == refused
        assert found.add(Submission(question.kind, np.arange(0), {name: a[:0] for name, a in arrays.items()})) == {}


def test_bags_count_where_all_answers_agree_about_their_size():
    counts = collector()
    counts.add(good(0))
    counts.add(good(2))
    question = EmbeddingsQuestion(BAGS, FeatureMap(2, (UnitNorm(),)))
    means = BagAnswers(question, 3, largest=10, promise=None)
    arrays = {"sizes": np.array([[4.0, 0], [4, 0], [5, 0]]), "means": np.zeros((3, 2, 2))}
    assert means.add(Submission("embeddings", np.arange(3), arrays)) == {}
    party, number = shared_bags(counts, means)
    assert (party.tolist(), number.tolist()) == ([0], [0])
    assert [found.tolist() for found in shared_bags(counts, means, least=4)] == [[0], [0]]
    assert [found.tolist() for found in shared_bags(counts, means, least=5)] == [[], []]
