"""Responses about bags: private label counts, kernel mean embeddings, rows, and their totals over common bags.

`PartyBags` says which of a party's rows count, and in which bag. The kinds of queries are

- `counts`: each party's private label counts of its bags (Iyer et al. 2016, Sec. 3, with exact accounting);
- `embeddings` and `rows`: the mean or the rows of each party's bags, without any label;
- `noisy_embeddings`: the label counts and the mean of each party's bags, private together;
- `count_totals` and `embedding_totals`: what a party adds to bags that are common to all parties. For a bag of which
  the party has no row, it sends zeros plus its share of the noise.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from federation.contract.errors import InputError
from federation.contract.query import OFF
from federation.contract.randomness import NoiseBits
from federation.mechanisms.counts.calibration import published_release
from federation.numerics.rows import Floats
from federation.queries.bags import (
    PUBLISHED,
    SUM_STEP,
    Bags,
    BagTotalsQuestion,
    CountsQuestion,
    CountTotalsQuestion,
    EmbeddingsQuestion,
    EmbeddingTotalsQuestion,
    NoisyEmbeddingsQuestion,
    RowsQuestion,
    largest_bag,
)
from parties.guard.answering import Arrays, NoisyAct, PlainAct
from parties.party_data.cohort import Cohort, Holdings
from parties.responses.rows import private_features, rows_at_a_time

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False, repr=False)
class PartyBags:
    """Raw rows (n, columns), class codes (n,) and `owner` (n,), the bag 0..B-1 of each row; never shown."""

    rows: np.ndarray
    labels: np.ndarray
    owner: np.ndarray
    declared: Bags

    @property
    def sizes(self) -> np.ndarray:
        """Rows of each bag (B,), float64."""
        return np.bincount(self.owner, minlength=self.declared.count).astype(np.float64)

    @property
    def counts(self) -> np.ndarray:
        """Label counts (B, C), int64. Private."""
        cells = self.owner * self.declared.classes + self.labels
        shape = (self.declared.count, self.declared.classes)
        return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)

    def each(self) -> Iterator[tuple[int, np.ndarray]]:
        """The number and the raw rows of every bag that is there; the others have a size of 0."""
        for bag in np.flatnonzero(self.sizes).tolist():
            yield bag, self.rows[self.owner == bag]


def bags_of(
    cohort: Cohort, party: int, declared: Bags, private_rows: bool = False, private_bags: bool = False
) -> PartyBags:
    """What a party holds, as the declared bags. Raises `InputError` for labels, bags or persons out of form.

    With `private_rows` features that are not finite are let through, as to refuse them would tell of a row, and with
    `private_bags` the number of a bag beyond those declared counts as the last of them, for the same reason. A deployed
    party counts a label beyond the declared classes as the last of them, and says so in its own log:
    to fail over it would tell for certain that there is such a label, and whoever asks chooses how many classes.
    """
    holdings = cohort.holdings(party, private_rows)
    if cohort.seed is None:
        holdings = _within(holdings, declared.classes)
    labels = holdings.class_codes(declared.classes)
    owner = np.zeros(len(labels), np.int64) if holdings.bags is None else _codes("bags", holdings.bags)
    if private_bags:
        owner = np.minimum(owner, declared.count - 1)
    if owner.max() >= declared.count:
        raise InputError(
            f"party {party} has a bag number {owner.max()}, declared are {declared.count} bags numbered from 0"
        )
    kept = _counted(holdings, owner, declared.rows_per_person)
    return PartyBags(np.asarray(holdings.rows, np.float64)[kept], labels[kept], owner[kept], declared)


def _within(holdings: Holdings, classes: int) -> Holdings:
    """The same with every label below `classes`."""
    if np.max(holdings.labels) >= classes:
        _log.warning("party %d: labels beyond the %d declared classes count as the last", holdings.party, classes)
    return replace(holdings, labels=np.minimum(holdings.labels, classes - 1))


def _codes(name: str, values: np.ndarray) -> np.ndarray:
    codes = np.asarray(values)
    if codes.ndim != 1 or codes.dtype.kind not in "iu" or codes.min() < 0:
        raise InputError(f"{name} must be one whole number from 0 per row; check the provider's {name}")
    return codes.astype(np.int64)


def kept_rows(owner: np.ndarray, persons: np.ndarray, rows_per_person: int) -> np.ndarray:
    """Positions of the rows that count: of each person the first in each bag, in its `rows_per_person` first bags.

    `owner` (n,) is the bag and `persons` (n,) the person of each row. Which rows these are depends on persons and bags
    only, and never on labels.

    Examples:
        >>> kept_rows(owner=np.array([0, 0, 1, 2]), persons=np.array([7, 7, 7, 7]), rows_per_person=2)
        array([0, 2])
    """
    _, person = np.unique(np.asarray(persons), return_inverse=True)
    _, first = np.unique(np.stack([person, owner]), axis=1, return_index=True)  # by person, then by bag
    starts = np.searchsorted(person[first], np.arange(person.max() + 1))
    rank = np.arange(len(first)) - starts[person[first]]
    return np.sort(first[rank < rows_per_person])


def _counted(holdings: Holdings, owner: np.ndarray, rows_per_person: int) -> np.ndarray:
    """Positions of the rows that count: all when rows are of different people. Raises `InputError`."""
    if rows_per_person:
        if holdings.persons is None:
            raise InputError("the aggregator protects persons, but the rows have no persons; name their column")
        return kept_rows(owner, holdings.persons, rows_per_person)
    if holdings.persons is not None and len(np.unique(holdings.persons)) < len(owner):
        raise InputError("several rows are about one person, whom label privacy does not protect; protect persons")
    return np.arange(len(owner))


def respond_count_totals(cohort: Cohort, question: CountTotalsQuestion) -> NoisyAct:
    """Rows and label counts of every bag, with a share of the noise on the counts."""

    def act(party: int, bits: NoiseBits) -> Arrays:
        bags = bags_of(cohort, party, question.bags)
        return {"sizes": bags.sizes, "counts": _noisy(question, bags.counts, bits)}

    return act


def respond_embedding_totals(cohort: Cohort, question: EmbeddingTotalsQuestion) -> NoisyAct:
    """The same beside the sum of every bag's rows; where rows are protected, with shares of noise on all of it.

    Raises `InputError` for rows protected behind a feature map that does not bound their norms.
    """
    if question.protects_rows and [step.kind for step in question.feature_map.steps[-1:]] != ["fourier"]:
        raise InputError("the noise of an embedding is for random Fourier features, whose rows have norm 1")
    most = largest_bag(rows_at_a_time(question.feature_map))

    def act(party: int, bits: NoiseBits) -> Arrays:
        hidden = question.protects_rows
        bags = bags_of(cohort, party, question.bags, private_rows=hidden, private_bags=hidden)
        if len(bags.labels) > most:
            raise InputError(
                f"a party has more than {most} rows in bags; the noise covers the rounding of sums over so many "
                "behind this feature map: divide the party, or make fewer features"
            )
        if not question.protects_rows:
            sums = np.rint(_sums(question, bags) / SUM_STEP) * SUM_STEP
            return {"sizes": bags.sizes, "counts": _noisy(question, bags.counts, bits), "sums": sums}
        both = _noisy(question, np.hstack([question.label_weight * bags.counts, _sums(question, bags)]), bits)
        return {"counts": both[..., : question.bags.classes], "sums": both[..., question.bags.classes :]}

    return act


def _sums(question: EmbeddingTotalsQuestion, bags: PartyBags) -> Floats:
    """Return the sum of every bag's rows behind the feature map (B, D)."""
    found = np.zeros((question.bags.count, question.feature_map.dimension))
    for bag, rows in bags.each():
        for tile in private_features(question.feature_map, rows):
            found[bag] += tile.sum(axis=0)
    return found


def _noisy(question: BagTotalsQuestion, values: np.ndarray, bits: NoiseBits) -> Floats:
    """Numbers of all bags (B, N) with shares of noise (draws, B, N), or as they are where it is off."""
    if question.noise.kind == OFF:
        return np.repeat(np.rint(values / SUM_STEP)[None] * SUM_STEP, question.draws, axis=0)
    drawn = question.mechanism().release(values.ravel(), bits, question.draws)
    return drawn.reshape(question.draws, *values.shape)


def respond_embeddings(cohort: Cohort, question: EmbeddingsQuestion) -> PlainAct:
    """The mean of every bag behind the feature map (Iyer et al. 2016, Sec. 2); zeros for bags that are not there."""

    def act(party: int) -> Arrays:
        bags = bags_of(cohort, party, question.bags)
        means = np.zeros(question.fields()["means"].shape)
        for bag, rows in bags.each():
            means[bag] = question.feature_map.mean(rows)
        return {"sizes": bags.sizes, "means": means}

    return act


def respond_noisy_embeddings(cohort: Cohort, question: NoisyEmbeddingsQuestion) -> NoisyAct:
    """Label counts and mean embedding of every bag, private together; zeros for bags that are not there.

    Raises `InputError` for a feature map that does not bound its rows' norms.
    """
    if [step.kind for step in question.feature_map.steps[-1:]] != ["fourier"]:
        raise InputError("the noise of an embedding is for random Fourier features, whose rows have norm 1")
    mechanism = question.mechanism() if question.noise.aims else None
    classes, weight = question.bags.classes, question.label_weight
    most = largest_bag(rows_at_a_time(question.feature_map))

    def act(party: int, bits: NoiseBits) -> Arrays:
        bags = bags_of(cohort, party, question.bags, private_rows=True)
        if bags.sizes.max() > most:  # sizes are public
            raise InputError(
                f"a bag of party {party} has {bags.sizes.max():.0f} rows; the noise covers the rounding of sums over "
                f"at most {most} behind this feature map: divide the bag, or make fewer features"
            )
        fields = question.fields()
        counts, means = np.zeros(fields["counts"].shape), np.zeros(fields["means"].shape)
        for bag, rows in bags.each():
            total = np.zeros(question.feature_map.dimension)
            for tile in private_features(question.feature_map, rows):
                total += tile.sum(axis=0)
            exact = np.concatenate([weight * bags.counts[bag], total])
            noisy = exact[None].repeat(question.draws, axis=0)
            if mechanism is not None:
                noisy = mechanism.release(exact, bits, question.draws)
            found = noisy[:, :classes] / weight
            # Moved alike, so that the counts of each draw sum to the public size.
            counts[:, bag] = found + (len(rows) - found.sum(axis=1, keepdims=True)) / classes
            means[:, bag] = noisy[:, classes:] / len(rows)
        return {"sizes": bags.sizes, "counts": counts, "means": means}

    return act


def respond_rows(cohort: Cohort, question: RowsQuestion) -> PlainAct:
    """The rows of every bag behind the feature map, filled up with zeros."""

    def act(party: int) -> Arrays:
        bags = bags_of(cohort, party, question.bags)
        rows = np.zeros(question.fields()["rows"].shape)
        for bag, raw in bags.each():
            held = question.feature_map.transform(raw)
            if len(held) > question.largest:
                raise InputError(f"a bag has {len(held)} rows, declared are at most {question.largest}")
            rows[bag, : len(held)] = held
        return {"sizes": bags.sizes, "rows": rows}

    return act


def respond_counts(cohort: Cohort, question: CountsQuestion) -> NoisyAct:
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
