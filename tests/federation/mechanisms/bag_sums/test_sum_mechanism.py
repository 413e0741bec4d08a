"""What mechanisms for label sums have in common: the promise, its premises, and its public numbers."""

from __future__ import annotations

import numpy as np
import pytest

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Unit
from federation.contract.randomness import NoiseBits
from federation.mechanisms.bag_sums import noisy_labels
from federation.mechanisms.bag_sums import noisy_labels as laplace
from federation.mechanisms.bag_sums import weighted_sums as repaired
from federation.mechanisms.bag_sums.design import BagDesign
from federation.mechanisms.bag_sums.noisy_labels import public_numbers

RANGE = (-1.0, 3.0)

M, K = 4000, 6

PLAIN = BagDesign(2 * M * K, M, K, noisy=M * K)

SIGNS = BagDesign(2 * M * K, M, K, per_bag=2, weights="signs")


@pytest.mark.parametrize(
    "mechanism",
    [
        noisy_labels.noisy_bag_sums(PLAIN, sigma=9.0, label_range=RANGE, epsilon=1.0),
        noisy_labels.calibrate(SIGNS, label_range=RANGE, epsilon=1.0, delta=1e-6),
        laplace.laplace_bag_sums(640, 5, 64, label_range=RANGE, epsilon=1.0),
        repaired.calibrate(640, 5, 64, label_range=RANGE, epsilon=1.0, delta=1e-6),
    ],
    ids=lambda mechanism: mechanism.name,
)
def test_guarantees_say_what_is_promised(mechanism) -> None:
    promised = mechanism.guarantee()
    assert (promised.epsilon, promised.delta) == (1.0, mechanism.delta)
    assert (promised.unit, promised.adjacency) == (Unit.LABEL, Adjacency.REPLACE)
    assert (promised.parameters["lowest_label"], promised.parameters["highest_label"]) == RANGE
    texts = " ".join(assumption.text for assumption in promised.assumptions)
    for premise in ("range is public", "key of the noise", "in at most one bag", "only labels are protected"):
        assert premise in texts
    assert ("real normal one" in texts) == (promised.parameters["weights"] == "gaussian")
    for unit, adjacency in ((Unit.ROW, Adjacency.REPLACE), (Unit.LABEL, Adjacency.ADD_REMOVE)):
        with pytest.raises(InputError, match="adjacency must be replace and unit must be label for"):
            mechanism.guarantee(unit, adjacency)


def test_a_record_is_in_a_bag_with_the_share_that_bags_hold() -> None:
    assert repaired.repaired_bag_sums(640, 5, 64, tau=5.0, label_range=RANGE, epsilon=1.0).inclusion == 0.5
    assert laplace.laplace_bag_sums(640, 10, 64, label_range=RANGE, epsilon=1.0).inclusion == 1.0


def test_the_noise_stands_between_bags_and_labels() -> None:
    numbers = public_numbers(BagDesign(100, 5, 20, noisy=10), RANGE, sigma=2.0)
    assert list(numbers) == ["records", "bags", "size", "weights", "sigma", "lowest_label", "highest_label"]
    assert list(numbers.values()) == [100, 5, 20, "gaussian", 2.0, *RANGE]


@pytest.mark.parametrize("shape", [(64, 5), (5, 63), (320,), (5, 64, 1)])
def test_labels_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    mechanism = repaired.repaired_bag_sums(640, 5, 64, tau=5.0, label_range=RANGE, epsilon=1.0)
    with pytest.raises(InputError, match=r"labels must be \(5, 64\), bags by size"):
        mechanism.release(np.zeros(shape), np.ones(shape), NoiseBits(1, "x"))
