"""Answers `mean_operator`: the sum of y x over a party's rows, with noise or a share of it (Patrini et al. 2015)."""

from __future__ import annotations

import numpy as np

from federation.bag_releases import OFF
from federation.errors import InputError
from federation.guarantee import NoGuarantee, Unit
from federation.messages import Submission
from federation.moment_messages import MomentQuestion
from federation.moment_releases import moment_guarantee, moment_noise
from federation.numerics.norms import within_norm
from federation.randomness import NoiseBits
from federation.row_premises import protected
from parties.holdings import Cohort
from parties.noising import noised, require_deployable, require_public_features
from parties.two_classes import two_classes

_GRID = 2.0**26  # sums without noise are whole multiples of its inverse: their total is the same in any order


def answer(cohort: Cohort, question: MomentQuestion) -> Submission:
    """Size and noisy sums of every party (Algorithm 2, on sums in place of means).

    A party whose data fails is named among the failures, and costs no other party. Raises `InputError` for a question
    that only a simulation may ask, and at a deployed node for one that takes features to be public when they are not.
    """
    unit = protected(question.protect)
    if unit is Unit.LABEL:
        require_public_features(cohort)
    guarantee = moment_guarantee(question)
    require_deployable(cohort, question.noising, guarantee)
    if question.contributors and cohort.seed is None:
        raise InputError("this node has no secure summation, and a share of the noise hides nothing by itself")
    noise = None if question.noising.mechanism["noise"] == OFF else moment_noise(question)

    def act(party: int, bits: NoiseBits) -> dict[str, np.ndarray]:
        size, total = 0, np.zeros(question.feature_map.dimension)
        for rows, classes in two_classes(cohort, party, question.feature_map, unit):
            size += len(rows)
            total += (2.0 * classes - 1.0) @ within_norm(rows, question.noising.mechanism.get("l1_bound"))
        if not 0 < size <= question.most:
            raise InputError(f"party {party} holds {size} rows, declared are 1 to {question.most}")
        if noise is None:
            sums = np.repeat(np.rint(total * _GRID)[None] / _GRID, question.noising.draws, axis=0)
        else:
            sums = noise.release(total, bits, question.noising.draws)
        return {"size": np.asarray(float(size)), "sums": sums}

    own = NoGuarantee("a share of the noise hides nothing by itself") if question.contributors else guarantee
    return noised(cohort, question, act, own, paid=guarantee)
