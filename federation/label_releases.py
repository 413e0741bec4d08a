"""What an answer about real labels promises: parties calibrate by it, and the aggregator writes it into its ledger."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from federation.bag_releases import OFF
from federation.entropy import with_entropy
from federation.errors import InputError
from federation.guarantee import Adjacency, Assumption, Check, Guarantee, NoGuarantee, Unit
from federation.label_messages import (
    BagSums,
    BagSumsQuestion,
    LabelledRows,
    LabelSumsQuestion,
    PrivateLabelsQuestion,
    WeightedSumsQuestion,
)
from federation.privacy import gaussian
from federation.privacy.bag_sums import noisy_labels, repaired
from federation.privacy.bag_sums.design import BagDesign
from federation.privacy.bag_sums.laplace import LaplaceBagSums, laplace_bag_sums
from federation.privacy.bag_sums.noisy_labels import NoisyBagSums, noisy_bag_sums
from federation.privacy.bag_sums.repaired import RepairedBagSums
from federation.privacy.labels.calibration import calibrate as calibrate_labels
from federation.privacy.labels.label_range import LabelRange
from federation.privacy.labels.mechanism import LabelMechanism
from federation.privacy.shaped_gaussian import LabelSums, Shape, fit_shape
from federation.privacy.shaped_gaussian import calibrate as calibrate_sums
from federation.row_premises import HELD_ONCE

AUTO = "auto"
DATA_DEPENDENT = "published"  # weighted sums without noise, whose delta depends on the data

LabelQuestion = BagSumsQuestion | WeightedSumsQuestion | PrivateLabelsQuestion | LabelSumsQuestion

_DIFFERENT_PEOPLE = Assumption(
    "every row is about another person: what is protected is one row's label", Check.DECLARED
)
_UNSAFE = (
    "sums of rows and labels with secret weights have no guarantee for all data: a bag whose labels are a linear "
    "function of its rows reveals them"
)


def bag_sums_mechanism(question: BagSumsQuestion, formed: int | None = None) -> NoisyBagSums | LaplaceBagSums:
    """Noise on labels of `formed` bags, None for as many as there can be: of a given `sigma`, or the least there is.

    The noise and what it promises do not depend on that number. Raises `InputError`.
    """
    known, design, label_range = question.noising.mechanism, question.design, question.rows.label_range
    shape = _shape(design, formed)
    if known["noise"] == "laplace":
        return laplace_bag_sums(*shape, label_range=label_range, epsilon=known["epsilon"])
    if known["noise"] != "gaussian":
        raise InputError(f"noise of bag sums must be gaussian or laplace, got {known['noise']!r}")
    chosen = {"per_bag": design.per_bag} if design.per_bag else {"noisy": design.noisy}
    bags = BagDesign(*shape, weights=design.weights, **chosen)  # type: ignore[arg-type]  # checked there
    if known.get("sigma") is not None:
        return noisy_bag_sums(bags, sigma=known["sigma"], label_range=label_range, epsilon=known["epsilon"])
    return _least_noise(bags, label_range, known["epsilon"], known["delta"])


def weighted_sums_mechanism(question: WeightedSumsQuestion, formed: int | None = None) -> RepairedBagSums:
    """Noise on label sums of `formed` bags with secret weights; as `bag_sums_mechanism`. Raises `InputError`."""
    known = question.noising.mechanism
    return _repaired(_shape(question.design, formed), question.rows.label_range, known["epsilon"], known["delta"])


def labels_mechanism(question: PrivateLabelsQuestion) -> LabelMechanism:
    """Noise on single labels. Raises `InputError`."""
    return calibrate_labels(label_range=question.rows.label_range, outside="clip", **question.noising.mechanism)


def sums_mechanism(question: LabelSumsQuestion, rows: np.ndarray) -> LabelSums:
    """Noise on X'y for the public rows X (n, d) of a party. Raises `InputError`."""
    return _sums(question, fit_shape(rows, question.shape), len(rows))  # type: ignore[arg-type]  # checked there


def guarantee_of(question: LabelQuestion) -> Guarantee | NoGuarantee:
    """What an answer promises, of whatever party. Raises `InputError` for numbers that no mechanism can work with."""
    noise = question.noising.mechanism["noise"]
    if noise == OFF:
        return NoGuarantee("noise is off")
    if isinstance(question, WeightedSumsQuestion):
        if noise == DATA_DEPENDENT:
            return NoGuarantee(_UNSAFE)
        mechanism: LabelMechanism | NoisyBagSums | LaplaceBagSums | RepairedBagSums = weighted_sums_mechanism(question)
    elif isinstance(question, BagSumsQuestion):
        mechanism = bag_sums_mechanism(question)
        if mechanism.delta > question.noising.mechanism["delta"]:
            return _missed(question, mechanism.delta)
    elif isinstance(question, PrivateLabelsQuestion):
        mechanism = labels_mechanism(question)
    else:
        return with_entropy(_promise_of_sums(question), question.noising)
    promised = mechanism.guarantee(Unit.LABEL, Adjacency.REPLACE, (HELD_ONCE, _DIFFERENT_PEOPLE))
    return with_entropy(promised, question.noising)


def label_range_of(rows: LabelledRows) -> LabelRange:
    """The declared range, to which every party clips its labels."""
    return LabelRange(rows.lowest, rows.highest, "clip")


def _shape(design: BagSums, formed: int | None) -> tuple[int, int, int]:
    """(rows that take part, bags, rows of a bag)."""
    bags = design.bags if formed is None else formed
    return design.taking_part(bags), bags, design.size


@lru_cache  # parties of equal size have equal mechanisms
def _least_noise(bags: BagDesign, label_range: tuple[float, float], epsilon: float, delta: float) -> NoisyBagSums:
    return noisy_labels.calibrate(bags, label_range=label_range, epsilon=epsilon, delta=delta)


@lru_cache
def _repaired(
    shape: tuple[int, int, int], label_range: tuple[float, float], epsilon: float, delta: float
) -> RepairedBagSums:
    return repaired.calibrate(*shape, label_range=label_range, epsilon=epsilon, delta=delta)


def _missed(question: BagSumsQuestion, delta: float) -> NoGuarantee:
    """Of a given sigma whose exact delta is beyond the one that was declared."""
    known, (lowest, highest) = question.noising.mechanism, question.rows.label_range
    return NoGuarantee(
        f"at epsilon {known['epsilon']:g} noise of standard deviation {known['sigma']:g} on labels from {lowest:g} to "
        f"{highest:g} has delta {delta:.3g}, above the declared {known['delta']:g}",
        (known["epsilon"], known["delta"]),
    )


def _promise_of_sums(question: LabelSumsQuestion) -> Guarantee:
    """Without the numbers that each party's own rows decide: its noise has the shape of those."""
    unit = Shape(np.ones((1, 1)), np.ones((1, 1)), 1.0, 1.0)
    promised = _sums(question, unit, question.rows.most).guarantee(
        Unit.LABEL, Adjacency.REPLACE, (HELD_ONCE, _DIFFERENT_PEOPLE)
    )
    known = {name: promised.parameters[name] for name in ("low", "high")}
    return replace(promised, parameters={**known, "shape": question.shape}, gaussian_mu=None)


def _sums(question: LabelSumsQuestion, shape: Shape, rows: int) -> LabelSums:
    known, labels = question.noising.mechanism, label_range_of(question.rows)
    epsilon, delta, noise = known["epsilon"], known["delta"], known["noise"]
    if noise == AUTO:
        # By variance on each coordinate, of as many as there are features: a public number, the same at all parties.
        pure = (question.rows.feature_map.dimension + 1) / epsilon**2
        noise = "pure" if delta == 0 or pure <= 1 / gaussian.mu(epsilon, delta) ** 2 else "gaussian"
    return calibrate_sums(
        shape, noise, rows=rows, epsilon=epsilon, delta=0.0 if noise == "pure" else delta, labels=labels
    )
