"""What an answer about bags promises: parties calibrate by it, and the aggregator writes it into its ledger.

Everything follows from the question, so both sides come to the same mechanism without a word about private data.
"""

from __future__ import annotations

import math
from dataclasses import replace

from federation.bag_messages import Bags, CountsQuestion, Noising, NoisyEmbeddingsQuestion
from federation.entropy import with_entropy
from federation.errors import InputError
from federation.guarantee import Adjacency, Assumption, Check, Guarantee, NoGuarantee, Unit
from federation.privacy.additive import AdditiveMechanism, calibrate
from federation.privacy.counts.calibration import calibrate as calibrate_counts
from federation.privacy.counts.mechanism import CountMechanism
from federation.privacy.counts.published_dirichlet import published_guarantee
from federation.row_premises import UNTIMED

OFF = "off"
PUBLISHED = "published_dirichlet"  # not differentially private, and drawn by a function of its own

_DISJOINT = Assumption("a row lies in one bag of one party", Check.ENFORCED)
_ONE_HOLDER = Assumption("no two parties hold the same row or person", Check.DECLARED)
_SIZES_PUBLIC = Assumption("bag sizes, and which replaced row lies in which bag, are public knowledge", Check.DECLARED)
_DIFFERENT_PEOPLE = Assumption(
    "every row is about another person: what is protected is one row's label", Check.DECLARED
)
_SHORT_ROWS = Assumption("rows behind the public feature map have norm at most 1", Check.ENFORCED)

_ROUNDING = 1e-6  # charged for, relative: norms and sums of rows, and products with the label weight, are rounded


def count_mechanism(question: CountsQuestion) -> CountMechanism:
    """The mechanism of one bag; a person in r bags leaves each of them (epsilon / r, delta / r).

    Raises `InputError` for numbers that the mechanism cannot work with.
    """
    known = dict(question.noising.mechanism)
    shares = max(1, question.bags.rows_per_person)
    known["epsilon"], known["delta"] = known["epsilon"] / shares, known["delta"] / shares
    return calibrate_counts(known.pop("noise"), classes=question.bags.classes, **known)


def counts_guarantee(question: CountsQuestion) -> Guarantee | NoGuarantee:
    """What the released counts of all bags promise together. Raises `InputError` as `count_mechanism`."""
    known = question.noising.mechanism
    if known["noise"] == OFF:
        return NoGuarantee("noise is off")
    if known["noise"] == PUBLISHED:
        return published_guarantee(known["epsilon"], known["delta"])
    unit = Unit.PERSON if question.bags.rows_per_person else Unit.LABEL
    mechanism = count_mechanism(question)
    guarantee = mechanism.guarantee(unit, Adjacency.REPLACE, _holding(question.bags))
    return _completed(guarantee, question.bags, question.noising)


def joint_mechanism(question: NoisyEmbeddingsQuestion) -> AdditiveMechanism:
    """Gaussian noise on a bag's weighted counts beside the sum of its rows.

    A replaced row moves the sum of rows of norm at most 1 by 2, whatever the bag's size, and the counts by sqrt 2.
    Raises `InputError` for persons in several bags, whose rows this does not protect together.
    """
    if question.bags.rows_per_person:
        raise InputError("protect: row knows no persons; use protect: label, which then protects a person's labels")
    if not 0 < question.label_weight < math.inf:
        raise InputError(f"label_weight must be a positive finite number, got {question.label_weight}")
    known = question.noising.mechanism
    return calibrate(
        "gaussian",
        sensitivity=(1 + _ROUNDING) * math.hypot(math.sqrt(2) * question.label_weight, 2),
        dimension=question.bags.classes + question.feature_map.dimension,
        epsilon=known["epsilon"],
        delta=known["delta"],
    )


def largest_bag(tile: int) -> int:
    """How many rows of norm 1 may be summed, `tile` at a time, so that the rounding of the sum is charged for.

    In a sum over n rows each passes through less than tile + n / tile + 2 additions, so that the sum errs by n times as
    many 2^-53 (Higham 2002, Section 3.1); for each of two neighbours that is to be 1e-6 of a row.
    """
    most, half = _ROUNDING * 2.0**53 / 1.01, tile / 2 + 1
    return int(tile * (math.sqrt(half**2 + most / tile) - half))


def joint_guarantee(question: NoisyEmbeddingsQuestion) -> Guarantee:
    """What the released counts and embeddings of all bags promise together. Raises `InputError`."""
    premises = (*_holding(question.bags), _SIZES_PUBLIC, _SHORT_ROWS, UNTIMED)
    guarantee = joint_mechanism(question).guarantee(Unit.ROW, Adjacency.REPLACE, premises)
    return _completed(guarantee, question.bags, question.noising)


def _holding(bags: Bags) -> tuple[Assumption, ...]:
    if not bags.rows_per_person:
        return (_DISJOINT, _ONE_HOLDER, _DIFFERENT_PEOPLE)
    text = f"of a person's rows one counts in each of at most {bags.rows_per_person} bags, whatever the labels"
    return (_DISJOINT, _ONE_HOLDER, Assumption(text, Check.ENFORCED))


def _completed(guarantee: Guarantee, bags: Bags, noising: Noising) -> Guarantee:
    """The guarantee of a bag as that of all bags, in all of which one unit can be, and what a simulation adds."""
    shares = max(1, bags.rows_per_person)
    if shares > 1:
        guarantee = replace(
            guarantee,
            epsilon=guarantee.epsilon * shares,
            delta=guarantee.delta * shares,
            parameters={**guarantee.parameters, "bags_per_person": shares},
            gaussian_mu=None,
        )
    return with_entropy(guarantee, noising)
