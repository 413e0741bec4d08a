"""Answers `counts`: each party's private label counts of its bags (Iyer et al. 2016, Sec. 3, with exact accounting)."""

from __future__ import annotations

import numpy as np

from federation.contract.query import OFF
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.calibration import published_release
from federation.queries.bags import PUBLISHED, CountsQuestion
from parties.answers.bags import bags_of
from parties.guard.answering import Arrays, NoisyAct
from parties.holdings.cohort import Cohort


def answer(cohort: Cohort, question: CountsQuestion) -> NoisyAct:
    """Estimates of the label counts of every bag, private on arrival; zeros for bags that a party does not have."""
    noise, draws = question.noise, question.draws
    mechanism = None if noise.kind in (OFF, PUBLISHED) else question.mechanism()

    def release(counts: np.ndarray, bits: NoiseBits) -> np.ndarray:
        """Counts (C,) to estimates (draws, C)."""
        if noise.kind == PUBLISHED:
            return published_release(counts, noise.epsilon, noise.delta, bits, draws)
        exact = np.repeat(counts[None].astype(np.float64), draws, axis=0)
        return exact if mechanism is None else mechanism.release(counts, bits, draws)

    def act(party: int, bits: NoiseBits) -> Arrays:
        bags = bags_of(cohort, party, question.bags)
        estimates = np.zeros(question.fields()["counts"].shape)
        for bag, _ in bags.each():
            estimates[:, bag] = release(bags.counts[bag], bits)
        return {"sizes": bags.sizes, "counts": estimates}

    return act
