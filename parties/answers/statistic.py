"""Answers `statistic`: each party's own share of the ensemble's statistic, computed from its votes, which stay home."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit

from federation.contract.query import Submission
from federation.features.steps import UnitNorm
from federation.numerics.rows import Floats, contrasts
from federation.queries.votes import StatisticQuestion
from parties.answers.probabilities import row_tiles
from parties.answers.products import row_products
from parties.holdings.cohort import Cohort
from parties.holdings.groups import Group
from parties.training.linear import LinearGroup
from parties.training.training import answered_by_groups

_LEAST = 0.01  # added to probabilities before the logarithm
_TOGETHER = 32  # parties, as many as are multiplied at once
_TILE_ENTRIES = 1 << 11  # probabilities of one of them, for all to stay in cache
_NO_DIRECTION = 1e-9  # a shorter share is made of rounding errors


def answer(cohort: Cohort, question: StatisticQuestion) -> Submission:
    """The share of every party, shape (C-1, r), as it is or of norm 1; a trusted-only submission."""
    share = _raw_share if question.share == "raw" else _unit_share
    return answered_by_groups(cohort, question, lambda group: {"statistic": share(group, question)})


def _raw_share(group: Group, question: StatisticQuestion) -> Floats:
    """z = B'V'Y/N of every party, (P, C-1, r), V its votes or probabilities."""
    if question.ballot == "labels":
        return _of_votes(group, question)
    return _of_probabilities(group, question)


def _unit_share(group: Group, question: StatisticQuestion) -> Floats:
    """The direction of a party's probabilities, that of its scores, or the mean direction of both, (P, C-1, r).

    Scores are those of a linear classifier; of any other the logarithms of its probabilities, or its votes where it
    has none.
    """
    if not group.gives_probabilities:
        return _direction(_of_votes(group, question))
    directions = []
    if question.share != "scores":
        of_rows = _of_softmax(group, question) if isinstance(group, LinearGroup) else _of_probabilities(group, question)
        directions.append(_direction(of_rows))
    if question.share != "probabilities" and isinstance(group, LinearGroup):
        directions.append(_direction(_of_scores(group, question)))
    elif question.share != "probabilities":
        directions.append(_direction(_of_probabilities(group, question, _logarithm)))
    return directions[0] if len(directions) == 1 else _direction(directions[0] + directions[1])


def _of_votes(group: Group, question: StatisticQuestion) -> Floats:
    basis = contrasts(question.training.classes)
    # One product per party: its bits must not depend on who is computed with it.
    products = [basis[codes].T @ question.coordinates for codes in group.votes(question.rows)]
    return np.stack(products) / len(question.rows)


def _of_probabilities(
    group: Group, question: StatisticQuestion, transform: Callable[[Floats], Floats] | None = None
) -> Floats:
    basis, rows = contrasts(question.training.classes), question.rows
    sums = np.zeros((len(group.parties), basis.shape[1], question.coordinates.shape[1]))
    for tile in row_tiles(len(rows), len(basis)):
        given = group.probabilities(rows[tile])
        given = transform(given) if transform else given
        for total, one in zip(sums, given, strict=True):
            total += (one @ basis).T @ question.coordinates[tile]
    return sums / len(rows)


def _logarithm(probabilities: Floats) -> Floats:
    return np.log(probabilities + _LEAST)


def _of_softmax(group: LinearGroup, question: StatisticQuestion) -> Floats:
    """The same of linear classifiers over all classes, whose scores are matrix products and no sums in a fixed order.

    The bits may be others on another processor, as those of every product with the coordinates.
    """
    weights, (rows, summed) = group.class_weights, question.summed
    basis = contrasts(weights.shape[1])
    sums = np.zeros((len(basis), len(weights), summed.shape[1]))
    for tile in row_tiles(len(rows), len(basis), _TILE_ENTRIES):
        transposed, coordinates = np.ascontiguousarray(rows[tile].T), summed[tile]
        for first in range(0, len(weights), _TOGETHER):
            some = slice(first, first + _TOGETHER)
            shares = _shares(weights[some], transposed)
            products = row_products(shares.reshape(-1, shares.shape[2]), coordinates)
            sums[-len(shares) :, some] += products.reshape(*shares.shape[:2], -1)
    if len(basis) == 2:
        sums[0] = -sums[1]
    return np.asarray(basis.T @ sums.transpose(1, 0, 2) / len(question.rows))


def _shares(weights: Floats, rows: Floats) -> Floats:
    """Of weights (P, C, d) on rows (d, n), (C, P, n): probabilities.

    For two classes (1, P, n), what that of the second differs by from 1/2: as much as that of the first, the other way.
    That is all that contrasts see, and takes half of the operations.
    """
    if weights.shape[1] == 2:
        beyond = row_products(weights[:, 1] - weights[:, 0], rows)
        expit(beyond, out=beyond)
        beyond -= 0.5
        return beyond[None]
    by_class = weights.transpose(1, 0, 2)
    shares = row_products(by_class.reshape(-1, len(rows)), rows).reshape(*by_class.shape[:2], rows.shape[1])
    shares -= shares.max(axis=0)
    np.exp(shares, out=shares)
    shares /= shares.sum(axis=0)
    return shares


def _of_scores(group: LinearGroup, question: StatisticQuestion) -> Floats:
    """B'W X'Y/N of weights W (P, C, d): no pass over the public rows for each party."""
    weights = contrasts(question.training.classes).T @ group.class_weights
    return np.asarray(weights @ question.moments)


def _direction(shares: Floats) -> Floats:
    """Shares (P, C-1, r) of norm 1; zero where there is no direction, or numbers that are not finite."""
    flat = shares.reshape(len(shares), -1)
    with np.errstate(over="ignore", invalid="ignore"):
        usable = np.linalg.norm(flat, axis=1) > _NO_DIRECTION
        usable &= np.isfinite(flat).all(axis=1)
    return UnitNorm().apply(np.where(usable[:, None], flat, 0.0)).reshape(shares.shape)
