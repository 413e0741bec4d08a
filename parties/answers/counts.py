"""Answers `counts`: each party's private label counts of its bags (Iyer et al. 2016, Sec. 3, with exact accounting)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from federation.contract.question import OFF
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.published_dirichlet import published_release
from federation.questions.bags import PUBLISHED, CountsQuestion
from parties.answers.bags import bags_of
from parties.guard.answering import Arrays, NoisyAct
from parties.holdings.cohort import Cohort

Released = Callable[[np.ndarray, NoiseBits], np.ndarray]  # counts (C,) and bits to estimates (draws, C)


def answer(cohort: Cohort, question: CountsQuestion) -> NoisyAct:
    """Estimates of the label counts of every bag, private on arrival; zeros for bags that a party does not have."""
    release = _release(question)

    def act(party: int, bits: NoiseBits) -> Arrays:
        bags = bags_of(cohort, party, question.bags)
        estimates = np.zeros(question.fields()["counts"].shape)
        for bag in np.flatnonzero(bags.sizes).tolist():
            estimates[:, bag] = release(bags.counts[bag], bits)
        return {"sizes": bags.sizes, "counts": estimates}

    return act


def _release(question: CountsQuestion) -> Released:
    noise, draws = question.noise, question.draws
    if noise.kind == OFF:
        return lambda counts, _: np.repeat(counts[None].astype(np.float64), draws, axis=0)
    if noise.kind == PUBLISHED:
        return lambda counts, bits: published_release(counts, noise.epsilon, noise.delta, bits, draws)
    mechanism = question.mechanism()
    return lambda counts, bits: mechanism.release(counts, bits, draws)
