"""Responses with noisy sums over all rows of a party: the mean operator, and second moments for regression.

The kinds of queries are

- `mean_operator`: the sum of y x over a party's rows, with noise or a share of it (Patrini et al. 2015). The noise is
  on the sum or, where a party has few rows, on every label (randomised response);
- `row_moments`: X'X, X'y and y'y over a party's private rows, or X'y of public rows, with noise or a share of it.
"""

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import protected
from federation.contract.query import OFF
from federation.contract.randomness import NoiseBits
from federation.numerics.rows import within_norm
from federation.queries.row_sums import MomentQuestion, RowMomentsQuestion, SummedQuestion
from parties.guard.answering import Arrays, NoisyAct
from parties.party_data.cohort import Cohort
from parties.responses.rows import from_minus_one, labelled, real_labels, two_classes

GRID = 2.0**26  # sums without noise are whole multiples of its inverse: their total is the same in any order


def respond_mean_operator(cohort: Cohort, question: MomentQuestion) -> NoisyAct:
    """Size and noisy sums of every party (Algorithm 2, on sums in place of means)."""
    unit = protected(question.protect)
    response, below = question.label_noise(), question.response_below

    def act(party: int, bits: NoiseBits) -> Arrays:
        size, total, few = 0, np.zeros(question.feature_map.dimension), []
        for rows, classes in two_classes(cohort, party, question.feature_map, unit):
            size, signs, cut = size + len(rows), 2.0 * classes - 1.0, within_norm(rows, question.noise.l1_bound)
            if size < below:
                few.append((cut, signs))
            total += signs @ cut
        require_declared(question, party, size)
        if response is not None and size < below:
            sums = np.sum([response.release(cut, signs, bits, question.draws) for cut, signs in few], axis=0)
        else:
            sums = noisy_sum(question, total, bits)
        said = {"response": np.asarray(float(size < below))} if question.by_size else {}
        return {"size": np.asarray(float(size)), "sums": sums, **said}

    return act


def require_declared(question: SummedQuestion, party: int, size: int) -> None:
    """Raises `InputError` for a number of rows, which is public, out of the declared range."""
    if not question.least_rows <= size <= question.most_rows:
        raise InputError(f"party {party} holds {size} rows, declared are {question.least_rows} to {question.most_rows}")


def noisy_sum(question: SummedQuestion, total: np.ndarray, bits: NoiseBits) -> np.ndarray:
    """A party's sum with noise (draws, D), or as it is where that is off."""
    if question.noise.kind == OFF:
        return np.repeat(np.rint(total * GRID)[None] / GRID, question.draws, axis=0)
    return question.mechanism().release(total, bits, question.draws)


def respond_row_moments(cohort: Cohort, question: RowMomentsQuestion) -> NoisyAct:
    """Size and noisy sums of every party, over rows that are cut to norm 1 and labels from -1 to 1.

    Nothing in a row or a label makes a party fail, but for several rows of one person. Where labels alone are
    protected, rows keep their length and weigh less, and what they say without labels comes as it is.
    """
    if question.labels_only:
        return _of_labels(cohort, question)
    statistic = question.statistic

    def act(party: int, bits: NoiseBits) -> Arrays:
        size, total = 0, np.zeros(statistic.dimension)
        for rows, labels in real_labels(cohort, party, question.rows):
            size += len(rows)
            total += statistic.of(within_norm(rows), labels)
        require_declared(question, party, size)
        return {"size": np.asarray(float(size)), "sums": noisy_sum(question, total, bits)}

    return act


def _of_labels(cohort: Cohort, question: RowMomentsQuestion) -> NoisyAct:
    def act(party: int, bits: NoiseBits) -> Arrays:
        rows, labels = labelled(cohort, party, question.rows)
        weights = 1 / np.maximum(1.0, np.linalg.norm(rows, axis=1))
        weighted = weights[:, None] * rows
        total = from_minus_one(labels, question.rows) @ weighted
        gram = rows.T @ weighted
        public = {"gram": (gram + gram.T) / 2, "row_sum": weighted.sum(axis=0), "weight": weights.sum()}
        rounded = {name: np.asarray(np.rint(array * GRID) / GRID) for name, array in public.items()}
        return {"size": np.asarray(float(len(rows))), "sums": noisy_sum(question, total, bits), **rounded}

    return act
