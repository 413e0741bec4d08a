"""Responses of local classifiers on public rows: labels, probabilities, and the party's statistic of them.

The kinds of queries are

- `votes`: each party's local classifier labels the public rows;
- `probabilities`: the class probabilities of each party's local classifier on the public rows;
- `statistic`: each party's own contribution to the ensemble's statistic, computed from its votes, which never leave the
  party;
- `individual`: scores of each party's own classifier on evaluation rows (simulation only).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import expit

from federation.contract.errors import InputError
from federation.contract.query import Submission
from federation.contract.randomness import generator
from federation.features.steps import UnitNorm
from federation.numerics.rows import Floats, contrasts, keep_freed_memory
from federation.queries.votes import (
    BALLOT_PARTS,
    IndividualQuestion,
    ProbabilitiesQuestion,
    StatisticQuestion,
    Training,
    VotesQuestion,
)
from parties.party_data.cohort import Cohort
from parties.party_data.isolation import Group, asked, stacked
from parties.training.linear import LinearGroup
from parties.training.training import answered_by_groups, auc, trained, world_key


def respond_votes(cohort: Cohort, question: VotesQuestion) -> Submission:
    """One class per auxiliary row and party, for the trusted aggregator's eyes (Hamm et al. 2016, Alg. 1-2)."""
    keep_freed_memory()
    return answered_by_groups(cohort, question, lambda group: {"votes": group.votes(question.rows)})


_EVALUATED = 20_000  # evaluation rows at most, in the proportions of the classes: an error of .003 in a split
_ORDERED = 500  # evaluation rows of a class at most whose order is scored: an error of .01 in a split, and much faster
_BLOCK = 1 << 22  # votes at a time; a group of one party, whose classifier may be slow to start, gets all rows at once


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Evaluation rows (n, d) behind the feature map, sorted by class; class c fills rows ends[c-1]:ends[c]."""

    rows: np.ndarray
    labels: np.ndarray
    ends: np.ndarray

    def scores(self, group: Group) -> dict[str, np.ndarray]:
        """Accuracy, mean recall of the classes that occur, and of two classes AUC, of each party: (P,) of each."""
        hits = self._hits(group)
        sizes = np.diff(self.ends, prepend=0)
        occurring = np.flatnonzero(sizes)
        # One class after another: a fixed order of addition, whatever the number of parties.
        recall = sum((hits[:, c] / sizes[c] for c in occurring), start=np.zeros(len(hits))) / len(occurring)
        found = {"accuracy": hits.sum(axis=1) / len(self.labels), "balanced_accuracy": recall}
        if len(self.ends) == 2:
            found["auc"] = self._auc(group) if len(occurring) == 2 and group.gives_probabilities else recall
        return found

    def _auc(self, group: Group) -> np.ndarray:
        """Return the AUC of each party's probabilities (P,), by evenly spaced rows.

        Without probabilities votes order rows, and their AUC is the recall (`scores`).
        """
        sides = []
        for start, end in ((0, self.ends[0]), tuple(self.ends)):
            rows = self.rows[start : end : max(1, -(-(end - start) // _ORDERED))]
            step = max(1, _BLOCK // (2 * len(group.parties)))
            blocks = [group.probabilities(rows[i : i + step])[:, :, 1] for i in range(0, len(rows), step)]
            sides.append(np.concatenate(blocks, axis=1))
        return np.array([auc(*pair) for pair in zip(*sides, strict=True)])

    def _hits(self, group: Group) -> np.ndarray:
        """Right votes of each party by class, (P, C)."""
        hits = np.zeros((len(group.parties), len(self.ends)), dtype=np.int64)
        step = len(self.rows) if len(group.parties) == 1 else max(1, _BLOCK // len(group.parties))
        for start in range(0, len(self.rows), step):
            hit = group.votes(self.rows[start : start + step]) == self.labels[start : start + step]
            starts = np.clip([0, *self.ends[:-1]], start, start + hit.shape[1]) - start
            ends = np.clip(self.ends, start, start + hit.shape[1]) - start
            for label in np.flatnonzero(ends > starts):
                hits[:, label] += [np.count_nonzero(one) for one in hit[:, starts[label] : ends[label]]]
        return hits


# By provider, and by world and feature map: the cohorts of a world are asked behind all its maps in turn.
_chosen: dict[str, tuple[np.ndarray, np.ndarray]] = {}
_known: dict[str, Evaluation] = {}
_MOST_KNOWN = 16


def _evaluation(cohort: Cohort, training: Training) -> Evaluation:
    key = world_key(cohort, training)
    if key not in _known:
        rows, labels = _evaluated(cohort)
        ends = np.cumsum(np.bincount(labels, minlength=training.classes))
        smallest = np.min_scalar_type(training.classes - 1)
        while len(_known) >= _MOST_KNOWN:
            _known.pop(next(iter(_known)))
        _known[key] = Evaluation(training.feature_map.transform(rows), labels.astype(smallest), ends)
    return _known[key]


def _evaluated(cohort: Cohort) -> tuple[np.ndarray, np.ndarray]:
    """Raw evaluation rows and labels sorted by class, at most 20,000, evenly spaced. Raises `InputError` for none."""
    if cohort.reference not in _chosen:
        found = cohort.provider.evaluation()
        if found is None:
            raise InputError("individual accuracies are a simulation's baseline; this node has no evaluation rows")
        rows, labels = found
        order = np.argsort(labels, kind="stable")
        order = order[:: -(-len(order) // _EVALUATED)]
        _chosen.clear()
        _chosen[cohort.reference] = rows[order], labels[order]
    return _chosen[cohort.reference]


def respond_individual(cohort: Cohort, question: IndividualQuestion) -> Submission:
    """Accuracy and balanced accuracy of the parties with an id below `question.first`; NON-PRIVATE.

    Raises `InputError` where the node has no evaluation rows, as in every deployment.
    """
    if cohort.first >= question.first:
        return stacked(question, [], {})
    evaluation = _evaluation(cohort, question.training)
    outcome = trained(cohort, question.training)
    groups = [group for group in outcome.groups if (group.parties < question.first).any()]
    scored, failures = asked(cohort, groups, evaluation.scores)
    found = stacked(question, scored, outcome.failures | failures)
    first = found.parties < question.first
    arrays = {name: array[first] for name, array in found.arrays.items()}
    return replace(found, parties=found.parties[first], arrays=arrays)


_LEAST = 0.01  # added to probabilities before the logarithm
_TOGETHER = 32  # parties, as many as are multiplied at once
_STATISTIC_TILE_ENTRIES = 1 << 11  # probabilities of one of them, for all to stay in cache
_NO_DIRECTION = 1e-9  # a shorter share is made of rounding errors


def respond_statistic(cohort: Cohort, question: StatisticQuestion) -> Submission:
    """The share of every party, shape (C-1, r), as it is or of norm 1; a trusted-only submission."""
    share = _raw_share if question.share == "raw" else _unit_share
    return answered_by_groups(cohort, question, lambda group: {"statistic": share(group, question)})


def _raw_share(group: Group, question: StatisticQuestion) -> Floats:
    """z = B'V'Y/N of every party, (P, C-1, r), V its votes or probabilities."""
    return (_of_votes if question.ballot == "labels" else _of_probabilities)(group, question)


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
        directions.append(_direction(_of_probabilities(group, question, lambda shares: np.log(shares + _LEAST))))
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


def _of_softmax(group: LinearGroup, question: StatisticQuestion) -> Floats:
    """The same of linear classifiers over all classes, whose scores are matrix products and no sums in a fixed order.

    The bits may be others on another processor, as those of every product with the coordinates.
    """
    weights, (rows, summed) = group.class_weights, question.summed
    basis = contrasts(weights.shape[1])
    sums = np.zeros((len(basis), len(weights), summed.shape[1]))
    for tile in row_tiles(len(rows), len(basis), _STATISTIC_TILE_ENTRIES):
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
    """Return probabilities (C, P, n) from weights (P, C, d) on rows (d, n).

    For two classes return (1, P, n): the difference of the second class's probability from 1/2. The first class has the
    same difference with the other sign. Contrasts see nothing else, and this takes half of the operations.
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


_TILE = 8  # rows in one product, which the innermost loop of a matrix product takes together


def row_products(rows: Floats, factor: Floats) -> Floats:
    """`rows` (n, d) @ `factor` (d, D), float64.

    Each row's product has the same bits, whatever its position and the other rows.
    How a product rounds depends on its shape, so every product here has the same: 8 rows, filled up with zeros. That
    it does not depend on the place of a row either is checked once for every shape of the factor; where it does, rows
    are multiplied one by one, which takes about twice as long.

    Examples:
        >>> row_products(np.array([[1.0, 2.0], [0.5, 0.0]]), np.array([[1.0], [10.0]]))
        array([[21. ],
               [ 0.5]])
    """
    count = len(rows)
    if not _same_everywhere(*factor.shape, factor.flags.f_contiguous):
        return np.asarray(np.matmul(rows[:, None, :], factor)[:, 0, :])
    out, whole = np.empty((count, factor.shape[1])), count - count % _TILE
    tiles, filled = (array[:whole].reshape(whole // _TILE, _TILE, array.shape[1]) for array in (rows, out))
    np.matmul(tiles, factor, out=filled)  # tile by tile
    if whole < count:
        last = np.zeros((_TILE, rows.shape[1]))
        last[: count - whole] = rows[whole:]
        out[whole:] = np.matmul(last, factor)[: count - whole]
    return out


@lru_cache(maxsize=256)
def _same_everywhere(width: int, columns: int, by_column: bool) -> bool:
    """Whether a row's product with such a factor has the same bits at each of the 8 places, among whatever rows."""
    random = generator(0, "row products")
    factor = random.standard_normal((width, columns))
    factor = np.asarray(factor, order="F" if by_column else "C")
    rows = random.standard_normal((_TILE, width))
    expected = np.matmul(rows, factor)
    turned = all(
        np.array_equal(np.matmul(np.roll(rows, turn, axis=0), factor), np.roll(expected, turn, axis=0))
        for turn in range(1, _TILE)
    )
    alone = np.zeros_like(rows)
    alone[0] = rows[0]
    return turned and np.array_equal(np.matmul(alone, factor)[0], expected[0])


_TILE_ENTRIES = 1 << 12  # probabilities of one party at a time


def respond_probabilities(cohort: Cohort, question: ProbabilitiesQuestion) -> Submission:
    """Every party's distributions in whole parts, for the aggregator's eyes only (Hamm et al. 2016, Sec. 3.3)."""
    rows, classes, declared = question.rows, question.training.classes, question.fields()["parts"]

    def cast(group: Group) -> dict[str, np.ndarray]:
        parts = np.empty((len(group.parties), len(rows), classes - 1), declared.dtype)
        for tile in row_tiles(len(rows), classes):
            parts[:, tile] = whole_parts(group.probabilities(rows[tile]), BALLOT_PARTS)[..., :-1]
        return {"parts": parts}

    return answered_by_groups(cohort, question, cast)


def row_tiles(rows: int, classes: int, entries: int | None = None) -> list[slice]:
    """Slices of the rows with so many probabilities of a party, by default few; the same whoever shares a group."""
    step = max(1, (_TILE_ENTRIES if entries is None else entries) // classes)
    return [slice(start, start + step) for start in range(0, rows, step)]


def whole_parts(shares: np.ndarray, total: int) -> np.ndarray:
    """Distributions (..., C) as integers that add up to `total` exactly, by largest remainders (Hamilton's method).

    Every class gets the whole parts of total * share; parts that are left go to the largest remainders, one each,
    the smallest index first among equals. Off by less than one part per class.

    Examples:
        >>> whole_parts(np.array([0.5, 0.3, 0.2]), 255)
        array([128,  76,  51])
    """
    exact = shares * (total / shares.sum(axis=-1, keepdims=True))
    parts = np.floor(exact).astype(np.int64)
    order = np.argsort(parts - exact, axis=-1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(shares.shape[-1]), order.shape), axis=-1)
    return np.asarray(parts + (rank < total - parts.sum(axis=-1, keepdims=True)))
