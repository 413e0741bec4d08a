"""Responses to `error_marginals`: noisy numbers of rows and of errors in each feature's bins (Lacombe et al. 2021)."""

import numpy as np

from federation.contract.guarantee import Unit, protected
from federation.contract.query import OFF
from federation.contract.randomness import NoiseBits
from federation.mechanisms.marginals.published import PublishedRates
from federation.numerics.binning import Bins
from federation.queries.marginals import ExchangeNoise, MarginalsQuestion
from parties.guard.answering import Arrays, NoisyAct
from parties.party_data.cohort import Cohort
from parties.responses.rows import two_classes


def respond_error_marginals(cohort: Cohort, question: MarginalsQuestion) -> NoisyAct:
    """Every party is the oracle of an exchange, of which this is one query (Algorithm 1).

    A site counts the queries of an exchange, and answers none twice and none beyond the last.
    """
    unit = protected(question.protect)
    noise = None if question.noise.kind == OFF else question.mechanism()

    def act(party: int, bits: NoiseBits) -> Arrays:
        errors, corrects = np.zeros((2, question.bins.total), dtype=np.int64)
        for features, classes in two_classes(cohort, party, question.feature_map, unit):
            wrong = question.hypothesis.predict(features) != classes
            errors += counts(question.bins, features[wrong])
            corrects += counts(question.bins, features[~wrong])
        return released(question, noise, unit, errors, corrects, bits)

    return act


def counts(bins: Bins, features: np.ndarray) -> np.ndarray:
    """Rows (n, d) in each bin, (K,) int64."""
    return np.bincount(bins.codes(features).ravel(), minlength=bins.total)


def released(
    question: MarginalsQuestion,
    noise: ExchangeNoise | None,
    unit: Unit,
    errors: np.ndarray,
    corrects: np.ndarray,
    bits: NoiseBits,
) -> dict[str, np.ndarray]:
    """What is said of numbers of errors and corrects (K,): every bin gets noise or a share, empty ones too."""
    rows = errors + corrects
    if noise is None or unit is Unit.LABEL:  # numbers of rows are public
        if question.asks == "rows":
            return {"rows": rows}
        if isinstance(noise, PublishedRates):
            return {"rates": noise.release(errors, rows, bits), "rows": rows}
        return {"errors": errors if noise is None else noise.release(errors, bits), "rows": rows}
    assert not isinstance(noise, PublishedRates), "published rates protect labels only"
    if question.asks == "rows":
        return {"rows": noise.release(rows, bits)}
    wrong, right = noise.release(np.stack([errors, corrects]), bits)
    return {"errors": wrong, "rows": wrong + right}
