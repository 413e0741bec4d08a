"""Answers `counts`: each party's private label counts of its bags (Iyer et al. 2016, Sec. 3, with exact accounting)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from federation.bag_messages import CountsQuestion
from federation.bag_releases import OFF, PUBLISHED, count_mechanism, counts_guarantee
from federation.messages import Submission
from federation.privacy.counts.published_dirichlet import published_release
from federation.randomness import NoiseBits
from parties.bags import bags_of
from parties.holdings import Cohort
from parties.noising import noised, require_deployable

Released = Callable[[np.ndarray, NoiseBits], np.ndarray]  # counts (C,) and bits to estimates (draws, C)


def answer(cohort: Cohort, question: CountsQuestion) -> Submission:
    """Estimates of the label counts of every bag, private on arrival; zeros for bags that a party does not have.

    A party whose data fails is named among the failures, and costs no other party. Raises `InputError` for a
    question that only a simulation may ask.
    """
    guarantee = counts_guarantee(question)
    require_deployable(cohort, question.noising, guarantee)
    release = _release(question)

    def act(party: int, bits: NoiseBits) -> dict[str, np.ndarray]:
        bags = bags_of(cohort, party, question.bags)
        estimates = np.zeros(question.fields()["counts"].shape)
        for bag in np.flatnonzero(bags.sizes).tolist():
            estimates[:, bag] = release(bags.counts[bag], bits)
        return {"sizes": bags.sizes, "counts": estimates}

    return noised(cohort, question, act, guarantee)


def _release(question: CountsQuestion) -> Released:
    known, draws = question.noising.mechanism, question.noising.draws
    if known["noise"] == OFF:
        return lambda counts, _: np.repeat(counts[None].astype(np.float64), draws, axis=0)
    if known["noise"] == PUBLISHED:
        epsilon, delta = known["epsilon"], known["delta"]
        return lambda counts, bits: published_release(counts, epsilon, delta, bits, draws)
    mechanism = count_mechanism(question)
    return lambda counts, bits: mechanism.release(counts, bits, draws)
