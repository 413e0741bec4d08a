"""Responses about real labels: weighted sums over bags, randomised labels, and the noisy sum X'y.

The kinds of queries are

- `bag_sums` and `weighted_sums`: weighted sums over bags of a party's own rows (Brahmbhatt et al. 2023);
- `private_labels` and `label_sums`: rows with labels made private, one by one or in one sum X'y.

The functions `sketches` and `label_sums` compute weighted sums over disjoint bags, in one pass over rows that may lie
in a file.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from federation.contract.errors import InputError
from federation.contract.query import OFF
from federation.contract.randomness import NoiseBits
from federation.mechanisms.bag_sums.noisy_labels import LaplaceBagSums
from federation.numerics.bag_weights import disjoint_bags, gaussian_weights, noisy_rows, sign_weights, stratified_noise
from federation.numerics.rows import Floats, Integers, keep_freed_memory
from federation.queries.labels import BagSumsQuestion, LabelSumsQuestion, PrivateLabelsQuestion, WeightedSumsQuestion
from parties.guard.answering import Arrays, NoisyAct
from parties.party_data.cohort import Cohort
from parties.responses.rows import labelled

_TILE_ENTRIES = 1 << 18  # of float64: 2 MiB
_LEAST_TILE = 256


@dataclass(frozen=True, eq=False)
class Sketch:
    """Weighted sums of m bags: `rows` (m, d) and `labels` (m,), float64. Not private by itself."""

    rows: Floats
    labels: Floats


def sketch(rows: Floats, labels: Floats, bags: Integers, weights: Floats) -> Sketch:
    """sum_i w_i x_i and sum_i w_i y_i over every bag, with the same weights (Brahmbhatt et al. 2023, Figure 1).

    Each sum adds its terms one by one in the order of the rows, in double precision: its bits depend on nothing else,
    so a memory map gives those of an array. A map is read once, and only where there are rows of bags.

    Args:
        rows: (n, d) numbers.
        labels: (n,) numbers.
        bags: row numbers (m, k) from 0 to n - 1, all different.
        weights: (m, k), finite.

    Raises `InputError` for arguments outside these ranges, and for rows or labels in a bag that are not finite.

    Examples:
        >>> rows, labels = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([10.0, 20.0, 30.0, 40.0])
        >>> found = sketch(rows, labels, np.array([[0, 3], [1, 2]]), np.array([[1.0, -1.0], [0.5, 0.5]]))
        >>> found.rows.ravel(), found.labels
        (array([-3. ,  2.5]), array([-30.,  25.]))
    """
    rows = rows if hasattr(rows, "shape") else np.asarray(rows)
    if rows.ndim != 2 or rows.dtype.kind not in "fiub":
        raise InputError(f"rows must be numbers on two axes (rows, columns), got shape {rows.shape} of {rows.dtype}")
    labels = np.asarray(labels, dtype=np.float64)
    if labels.shape != (len(rows),):
        raise InputError(f"labels must be one number for each of {len(rows)} rows, got shape {labels.shape}")
    bags, weights = np.asarray(bags), np.asarray(weights, dtype=np.float64)
    place = _places(len(rows), bags, weights)
    keep_freed_memory()
    tile = max(_LEAST_TILE, _TILE_ENTRIES // (rows.shape[1] + 1))
    sums = np.zeros((len(bags), rows.shape[1] + 1))  # labels last
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
        for start in range(0, len(rows), tile):
            chosen = start + np.flatnonzero(place[start : start + tile] >= 0)
            if len(chosen):
                part = chosen if len(chosen) < tile else slice(start, start + tile)
                at = place[chosen]
                _add(sums, rows[part], labels[part], at // bags.shape[1], weights.ravel()[at])
    _require_finite(sums, rows, labels, bags)
    return Sketch(sums[:, :-1].copy(), sums[:, -1].copy())


def sketches(rows: Floats, labels: Floats, bags: Integers, weights: Floats) -> Sketch:
    """The sketches of several draws of bags, (draws, m, k), with the bits of each alone: (draws, m, d) and (draws, m).

    Of few rows many draws are made at a time, as if each had rows of its own. Raises `InputError` as `sketch`.

    Examples:
        >>> rows, labels = np.array([[1.0], [2.0], [3.0]]), np.array([10.0, 20.0, 30.0])
        >>> found = sketches(rows, labels, np.array([[[0, 2]], [[2, 1]]]), np.array([[[1.0, -1.0]], [[0.5, 0.5]]]))
        >>> found.rows.ravel(), found.labels.ravel()
        (array([-2. ,  2.5]), array([-20.,  25.]))
    """
    together = max(1, _TILE_ENTRIES // ((rows.shape[1] + 1) * len(rows)))
    made = []
    for start in range(0, len(bags), together):
        drawn = bags[start : start + together]
        own = np.arange(len(drawn)).reshape(-1, 1, 1) * len(rows)
        copies = (np.tile(rows, (len(drawn), 1)), np.tile(labels, len(drawn))) if len(drawn) > 1 else (rows, labels)
        flat = (drawn + own).reshape(-1, bags.shape[2])
        made.append(sketch(*copies, flat, weights[start : start + together].reshape(flat.shape)))
    shape = bags.shape[:2]
    summed = np.concatenate([one.rows for one in made]).reshape(*shape, rows.shape[1])
    return Sketch(summed, np.concatenate([one.labels for one in made]).reshape(shape))


def label_sums(labels: Floats, bags: Integers, weights: Floats) -> Floats:
    """sum_i w_i y_i over every bag, (m,), for labels (n,): the same bits as those of `sketch`, which says the rest."""
    labels = np.asarray(labels, dtype=np.float64)
    return sketch(np.empty((len(labels), 0)), labels, bags, weights).labels


def _add(sums: Floats, rows: Floats, labels: Floats, owner: Integers, weights: Floats) -> None:
    """Adds weights_i (x_i, y_i) to the sums of bag owner_i, in the order of i.

    The sums so far are rows with weight 1 before them, so that the product adds to them term by term.
    """
    from scipy.sparse import csc_array

    touched, local = np.unique(owner, return_inverse=True)
    before, count = len(touched), len(touched) + len(owner)
    stacked = np.empty((count, sums.shape[1]))
    stacked[:before] = sums[touched]
    stacked[before:, :-1] = rows
    stacked[before:, -1] = labels
    factors = np.concatenate([np.ones(before), weights])
    targets = np.concatenate([np.arange(before), local])
    # One entry a column, and products of compressed columns run through the columns in order.
    spread = csc_array((factors, targets, np.arange(count + 1)), shape=(before, count))
    sums[touched] = spread @ stacked


def _places(rows: int, bags: Integers, weights: Floats) -> Integers:
    """Where each row is among the flattened bags, (n,), -1 for rows in none."""
    if bags.ndim != 2 or 0 in bags.shape or bags.dtype.kind not in "iu":
        raise InputError(f"bags must be row numbers of shape (bags, rows), got shape {bags.shape} of {bags.dtype}")
    if weights.shape != bags.shape or not np.isfinite(weights).all():
        raise InputError(f"weights must be finite and of the bags' shape {bags.shape}, got shape {weights.shape}")
    if bags.min() < 0 or bags.max() >= rows:
        raise InputError(f"bags must hold row numbers from 0 to {rows - 1}, got {bags.min()} to {bags.max()}")
    place: Integers = np.full(rows, -1, dtype=np.int32 if bags.size < 2**31 else np.int64)
    place[bags.ravel()] = np.arange(bags.size, dtype=place.dtype)
    if np.count_nonzero(place >= 0) < bags.size:
        raise InputError("bags must be disjoint: a row is in two of them, or twice in one; draw bags by disjoint_bags")
    return place


def _require_finite(sums: Floats, rows: Floats, labels: Floats, bags: Integers) -> None:
    """Sums are finite only when all their terms are, even with weights of 0."""
    bad = np.flatnonzero(~np.isfinite(sums).all(axis=1))
    if not len(bad):
        return
    members = np.sort(bags[bad[0]])
    finite = np.isfinite(np.asarray(rows[members], np.float64)).all(axis=1) & np.isfinite(labels[members])
    if finite.all():
        raise InputError(f"the sums of bag {bad[0]} leave the range of double precision; scale rows and labels down")
    raise InputError(f"rows and labels must be finite: row {members[~finite][0]} is not; remove or replace such values")


def respond_private_labels(cohort: Cohort, question: PrivateLabelsQuestion) -> NoisyAct:
    """All rows of every party with a private label each; zeros where there is no row."""
    mechanism = None if question.noise.kind == OFF else question.mechanism()

    def act(party: int, bits: NoiseBits) -> Arrays:
        rows, labels = labelled(cohort, party, question.rows)
        fields, size = question.fields(), len(rows)
        sent = {name: np.zeros(declared.shape) for name, declared in fields.items()}
        sent["size"], sent["rows"][:size] = np.asarray(float(size)), rows
        for draw in range(question.draws):
            sent["labels"][draw, :size] = labels if mechanism is None else mechanism.release(labels, bits)
        return sent

    return act


def respond_label_sums(cohort: Cohort, question: LabelSumsQuestion) -> NoisyAct:
    """X'X and noisy X'y of every party, whose noise is shaped by its own public rows, and what is known of it."""

    def act(party: int, bits: NoiseBits) -> Arrays:
        rows, labels = labelled(cohort, party, question.rows)
        sent = {"size": np.asarray(float(len(rows))), "gram": rows.T @ rows}
        if question.noise.kind == OFF:
            return {**sent, "moment": np.tile(rows.T @ labels, (question.draws, 1))}
        mechanism = question.mechanism(rows)
        moment = mechanism.release(rows, labels, bits, question.draws)
        return {**sent, "moment": moment, "row_sum": rows.sum(axis=0), "covariance": mechanism.covariance()}

    return act


_AT_A_TIME = 1 << 14  # rows in bags, of all draws that are made together: so many or those of one draw


def respond_bag_sums(cohort: Cohort, question: BagSumsQuestion) -> NoisyAct:
    """Rows, weights and noisy label sums of the bags of every party (Fig. 2).

    Raises `InputError` at a deployed node whose features are not declared public, and for few bags of many rows.
    """
    _require_sendable(cohort, question)
    design = question.design
    drawn = sign_weights if design.weights == "signs" else gaussian_weights

    def act(party: int, noise: NoiseBits) -> Arrays:
        rows, labels, formed, public = _begun(cohort, party, question)
        mechanism = question.mechanism(formed) if question.noise.aims else None
        bags = disjoint_bags(design.taking_part(formed), formed, design.size, public)
        if design.per_bag:  # which rows of the bags get noise on their labels, (m, k)
            noisy = stratified_noise(len(bags), design.size, design.per_bag)
        else:
            noisy = noisy_rows(design.records, design.noisy, public)[bags]
        if cohort.seed is None and not noisy.any(axis=1).all():
            raise InputError("a bag has no noisy label; ask for noise on a number of labels in every bag")
        weights, sums = [], []
        for count in _together(question, formed):
            weights.append(np.stack([drawn(formed, design.size, public) for _ in range(count)]))
            members = np.broadcast_to(labels[bags], weights[-1].shape)
            if mechanism is None:
                sums.append(np.stack([label_sums(labels, bags, own) for own in weights[-1]]))
            elif isinstance(mechanism, LaplaceBagSums):
                sums.append(mechanism.release(members, weights[-1], noise))
            else:
                sums.append(mechanism.release(members, weights[-1], noisy, noise))
        found = {"rows": rows[bags], "weights": np.concatenate(weights), "sums": np.concatenate(sums)}
        return _filled_up(question, formed, found)

    return act


def respond_weighted_sums(cohort: Cohort, question: WeightedSumsQuestion) -> NoisyAct:
    """Sums of rows and labels with weights that nobody learns, of every party (Fig. 1).

    Features of all rows of a bag are mixed but not protected. Raises `InputError` as `respond_bag_sums`.
    """
    _require_sendable(cohort, question)
    design = question.design

    def act(party: int, noise: NoiseBits) -> Arrays:
        rows, labels, formed, secret = _begun(cohort, party, question)
        mechanism = question.mechanism(formed) if question.noise.aims else None
        row_sums, sums = [], []
        for count in _together(question, formed):
            drawn = [
                (
                    disjoint_bags(design.taking_part(formed), formed, design.size, secret),
                    gaussian_weights(formed, design.size, secret),
                )
                for _ in range(count)
            ]
            bags, weights = (np.stack(one) for one in zip(*drawn, strict=True))
            # Exact sums of labels are left alone unless they are sent: that they overflow would tell of a label.
            mixed = sketches(rows, labels if mechanism is None else np.zeros_like(labels), bags, weights)
            row_sums.append(mixed.rows)
            sums.append(mixed.labels if mechanism is None else mechanism.release(labels[bags], weights, noise))
        return _filled_up(question, formed, {"row_sums": np.concatenate(row_sums), "label_sums": np.concatenate(sums)})

    return act


def _together(question: BagSumsQuestion | WeightedSumsQuestion, formed: int) -> Iterator[int]:
    """How many draws are made at a time; they have the bits of one after another."""
    most = max(1, _AT_A_TIME // (formed * question.design.size))
    for start in range(0, question.draws, most):
        yield min(most, question.draws - start)


def _begun(
    cohort: Cohort, party: int, question: BagSumsQuestion | WeightedSumsQuestion
) -> tuple[np.ndarray, np.ndarray, int, NoiseBits]:
    """Rows (n, d), labels (n,), how many bags they form, and the bits that bags and weights are drawn by.

    These bits are no part of the stream of the noise: weights may be published, and noise may not. Raises `InputError`
    for too few rows.
    """
    rows, labels = labelled(cohort, party, question.rows)
    design, bits = question.design, f"bags and weights|{question.release.key}"
    if (formed := design.formed(len(rows))) < 1:
        needed = design.records or design.size
        raise InputError(f"{needed} rows must take part, got {len(rows)}; ask for fewer or smaller bags")
    return rows, labels, formed, NoiseBits(cohort.seed if question.seeded else None, bits, party)


def _require_sendable(cohort: Cohort, question: BagSumsQuestion | WeightedSumsQuestion) -> None:
    """Refuse outside a simulation to send few of many rows. Raises `InputError`.

    Of few rows each is so rarely in a bag that its label needs hardly any noise, and whoever is drawn goes unprotected.
    """
    design = question.design
    if cohort.seed is None and 2 * design.bags * design.size < design.records:
        raise InputError(
            f"outside a simulation half of the rows that take part must be in bags, got {design.bags} bags of "
            f"{design.size} out of {design.records} rows; ask for more bags, or for fewer rows"
        )


def _filled_up(
    question: BagSumsQuestion | WeightedSumsQuestion, formed: int, found: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """An answer with zeros for the bags that a party did not form."""
    sent = {name: np.zeros(declared.shape) for name, declared in question.fields().items()}
    sent["formed"] = np.asarray(float(formed))
    for name, array in found.items():
        place = (slice(formed),) if name == "rows" else (slice(None), slice(formed))
        sent[name][place] = array
    return sent
