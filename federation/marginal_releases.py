"""What the answers of an exchange promise together: parties calibrate by it, and the aggregator writes it down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from federation.bag_releases import OFF
from federation.entropy import with_entropy
from federation.errors import InputError
from federation.guarantee import Adjacency, Guarantee, NoGuarantee
from federation.marginal_messages import PUBLISHED, MarginalsQuestion
from federation.privacy.marginals.noise import MarginalNoise, calibrate
from federation.privacy.marginals.published import PublishedRates
from federation.row_premises import holding, protected


def marginal_noise(question: MarginalsQuestion) -> MarginalNoise | PublishedRates:
    """The noise on each answer of the exchange. Raises `InputError` for numbers that it cannot work with."""
    return exchange_noise(
        question.noising.mechanism,
        len(question.bins.sizes),
        question.exchange.queries,
        question.protect,
        question.adjacency,
    )


def exchange_noise(
    mechanism: Mapping[str, Any], features: int, queries: int, protect: str, adjacency: str
) -> MarginalNoise | PublishedRates:
    """The noise on each answer, before anything is asked. Raises `InputError` as `marginal_noise`."""
    return _noise(mechanism["noise"], features, queries, mechanism["epsilon"], mechanism["delta"], protect, adjacency)


def exchange_guarantee(question: MarginalsQuestion) -> Guarantee | NoGuarantee:
    """What all answers of the exchange promise together. Raises `InputError` as `marginal_noise`."""
    if question.noising.mechanism["noise"] == OFF:
        return NoGuarantee("noise is off")
    return with_entropy(marginal_noise(question).guarantee(holding(protected(question.protect))), question.noising)


def answer_guarantee(question: MarginalsQuestion) -> Guarantee | NoGuarantee:
    """What this one answer promises. Raises `InputError` as `marginal_noise`."""
    if question.noising.mechanism["noise"] == OFF:
        return NoGuarantee("noise is off")
    promised = with_entropy(marginal_noise(question).per_query(holding(protected(question.protect))), question.noising)
    parameters: dict[str, float | int | str] = {"exchange": question.exchange.name, "query": question.exchange.query}
    return replace(promised, parameters=promised.parameters | parameters | {"queries": question.exchange.queries})


@lru_cache  # all parties of an exchange have the same
def _noise(
    noise: str, features: int, queries: int, epsilon: float, delta: float, protect: str, adjacency: str
) -> MarginalNoise | PublishedRates:
    unit = protected(protect)
    if adjacency not in tuple(Adjacency):
        raise InputError(f"adjacency must be {' or '.join(Adjacency)}, got {adjacency!r}")
    if noise == PUBLISHED:
        rates = PublishedRates(features, queries, epsilon)
        rates.guarantee(unit=unit, adjacency=Adjacency(adjacency))  # refuses units that it does not protect
        return rates
    return calibrate(
        noise,  # type: ignore[arg-type]  # checked there
        features=features,
        queries=queries,
        epsilon=epsilon,
        delta=delta,
        unit=unit,
        adjacency=Adjacency(adjacency),
    )
