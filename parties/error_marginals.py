"""Answers `error_marginals`: noisy numbers of rows and of errors in the bins of every feature (Lacombe et al. 2021)."""

from __future__ import annotations

import numpy as np

from federation.bag_releases import OFF
from federation.errors import InputError
from federation.guarantee import Unit
from federation.marginal_messages import MarginalsQuestion
from federation.marginal_releases import answer_guarantee, exchange_guarantee, marginal_noise
from federation.messages import Submission
from federation.numerics.binning import Bins
from federation.privacy.marginals.noise import MarginalNoise
from federation.privacy.marginals.published import PublishedRates
from federation.randomness import NoiseBits
from federation.row_premises import protected
from parties.holdings import Cohort
from parties.noising import noised, require_deployable, require_public_features
from parties.two_classes import two_classes


def answer(cohort: Cohort, question: MarginalsQuestion) -> Submission:
    """Every party is the oracle of an exchange, of which this is one query (Algorithm 1).

    A deployed party counts the queries of an exchange in the ledger of its allowance, and answers none twice and none
    beyond the last. A party whose data fails is named among the failures, and costs no other party. Raises `InputError`
    for a question that only a simulation may ask, or that takes features to be public when they are not.
    """
    unit = protected(question.protect)
    if unit is Unit.LABEL:
        require_public_features(cohort)
    guarantee = answer_guarantee(question)
    require_deployable(cohort, question.noising, guarantee)
    if question.noising.draws != 1:
        raise InputError(f"a query is answered once, got {question.noising.draws} draws; begin an exchange for each")
    noise = None if question.noising.mechanism["noise"] == OFF else marginal_noise(question)

    def act(party: int, bits: NoiseBits) -> dict[str, np.ndarray]:
        errors, corrects = np.zeros((2, question.bins.total), dtype=np.int64)
        for features, classes in two_classes(cohort, party, question.feature_map, unit):
            wrong = question.hypothesis.predict(features) != classes
            errors += counts(question.bins, features[wrong])
            corrects += counts(question.bins, features[~wrong])
        return released(question, noise, unit, errors, corrects, bits)

    return noised(cohort, question, act, guarantee, paid=exchange_guarantee(question), exchange=question.exchange)


def counts(bins: Bins, features: np.ndarray) -> np.ndarray:
    """Rows (n, d) in each bin, (K,) int64."""
    return np.bincount(bins.codes(features).ravel(), minlength=bins.total)


def released(
    question: MarginalsQuestion,
    noise: MarginalNoise | PublishedRates | None,
    unit: Unit,
    errors: np.ndarray,
    corrects: np.ndarray,
    bits: NoiseBits,
) -> dict[str, np.ndarray]:
    """What is said of numbers of errors and corrects (K,): every bin gets noise, empty ones too."""
    rows = errors + corrects
    if noise is None or unit is Unit.LABEL:  # numbers of rows are public
        if question.asks == "rows":
            return {"rows": rows}
        if isinstance(noise, PublishedRates):
            return {"rates": noise.release(errors, rows, bits), "rows": rows}
        return {"errors": errors if noise is None else noise.release(errors, bits), "rows": rows}
    assert isinstance(noise, MarginalNoise), "published rates protect labels only"
    if question.asks == "rows":
        return {"rows": noise.release(rows, bits)}
    wrong, right = noise.release(np.stack([errors, corrects]), bits)
    return {"errors": wrong, "rows": wrong + right}
