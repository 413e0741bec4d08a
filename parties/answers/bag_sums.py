"""Answers `bag_sums` and `weighted_sums`: weighted sums over bags of a party's own rows (Brahmbhatt et al. 2023)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from federation.contract.errors import InputError
from federation.contract.randomness import NoiseBits
from federation.mechanisms.bag_sums.noisy_labels import LaplaceBagSums
from federation.numerics.bag_weights import disjoint_bags, gaussian_weights, noisy_rows, sign_weights, stratified_noise
from federation.queries.labels import BagSumsQuestion, WeightedSumsQuestion
from parties.answers.rows import labelled
from parties.answers.sketch import label_sums, sketches
from parties.guard.answering import Arrays, NoisyAct
from parties.holdings.cohort import Cohort

_AT_A_TIME = 1 << 14  # rows in bags, of all draws that are made together: so many or those of one draw


def answer(cohort: Cohort, question: BagSumsQuestion) -> NoisyAct:
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


def answer_secretly(cohort: Cohort, question: WeightedSumsQuestion) -> NoisyAct:
    """Sums of rows and labels with weights that nobody learns, of every party (Fig. 1).

    Features of all rows of a bag are mixed but not protected. Raises `InputError` as `answer`.
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
