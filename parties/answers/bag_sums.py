"""Answers `bag_sums` and `weighted_sums`: weighted sums over bags of a party's own rows (Brahmbhatt et al. 2023)."""

from __future__ import annotations

import numpy as np

from federation.contract.errors import InputError
from federation.contract.question import OFF
from federation.contract.randomness import NoiseBits
from federation.mechanisms.bag_sums.laplace import LaplaceBagSums
from federation.numerics.bag_weights import disjoint_bags, gaussian_weights, noisy_rows, sign_weights, stratified_noise
from federation.questions.labels import BagSums, BagSumsQuestion, WeightedSumsQuestion
from parties.answers.labelled import labelled
from parties.answers.sketch import label_sums, sketch
from parties.guard.answering import Arrays, NoisyAct, require_public_features
from parties.holdings.cohort import Cohort


def answer(cohort: Cohort, question: BagSumsQuestion) -> NoisyAct:
    """Rows, weights and noisy label sums of the bags of every party (Fig. 2).

    Raises `InputError` at a deployed node whose features are not declared public, and for few bags of many rows.
    """
    require_public_features(cohort)
    design = question.design
    _require_most_rows(cohort, design)
    exact = question.noise.kind == OFF

    def act(party: int, noise: NoiseBits) -> Arrays:
        rows, labels = labelled(cohort, party, question.rows)
        formed = _formed(rows, design)
        mechanism = None if exact else question.mechanism(formed)
        public = _design_bits(cohort, party, question)
        bags = disjoint_bags(design.taking_part(formed), formed, design.size, public)
        noisy = _noisy(design, bags, public)
        if cohort.seed is None and not noisy.any(axis=1).all():
            raise InputError("a bag has no noisy label; ask for noise on a number of labels in every bag")
        weights, sums = [], []
        for _ in range(question.draws):
            weights.append(_weights(design, formed, public))
            if mechanism is None:
                sums.append(label_sums(labels, bags, weights[-1]))
            elif isinstance(mechanism, LaplaceBagSums):
                sums.append(mechanism.release(labels[bags], weights[-1], noise))
            else:
                sums.append(mechanism.release(labels[bags], weights[-1], noisy, noise))
        found = {"rows": rows[bags], "weights": np.stack(weights), "sums": np.stack(sums)}
        return _filled_up(question, formed, found)

    return act


def answer_secretly(cohort: Cohort, question: WeightedSumsQuestion) -> NoisyAct:
    """Sums of rows and labels with weights that nobody learns, of every party (Fig. 1).

    Features of all rows of a bag are mixed but not protected. Raises `InputError` as `answer`.
    """
    require_public_features(cohort)
    design = question.design
    _require_most_rows(cohort, design)
    exact = not question.noise.aims

    def act(party: int, noise: NoiseBits) -> Arrays:
        rows, labels = labelled(cohort, party, question.rows)
        formed = _formed(rows, design)
        mechanism = None if exact else question.mechanism(formed)
        secret = _design_bits(cohort, party, question)
        row_sums, sums = [], []
        for _ in range(question.draws):
            bags = disjoint_bags(design.taking_part(formed), formed, design.size, secret)
            weights = gaussian_weights(formed, design.size, secret)
            # Exact sums of labels are left alone unless they are sent: that they overflow would tell of a label.
            mixed = sketch(rows, labels if mechanism is None else np.zeros_like(labels), bags, weights)
            row_sums.append(mixed.rows)
            sums.append(mixed.labels if mechanism is None else mechanism.release(labels[bags], weights, noise))
        return _filled_up(question, formed, {"row_sums": np.stack(row_sums), "label_sums": np.stack(sums)})

    return act


def _design_bits(cohort: Cohort, party: int, question: BagSumsQuestion | WeightedSumsQuestion) -> NoiseBits:
    """A stream for bags and weights, apart from that of the noise: weights may be published, and noise may not."""
    return NoiseBits(cohort.seed if question.seeded else None, f"bags and weights|{question.release.key}", party)


def _require_most_rows(cohort: Cohort, design: BagSums) -> None:
    """Refuse outside a simulation to release few of many rows. Raises `InputError`.

    A row is then so rarely in a bag that its label needs hardly any noise, and whoever is drawn goes unprotected.
    """
    if cohort.seed is None and 2 * design.bags * design.size < design.records:
        raise InputError(
            f"outside a simulation half of the rows that take part must be in bags, got {design.bags} bags of "
            f"{design.size} out of {design.records} rows; ask for more bags, or for fewer rows"
        )


def _formed(rows: np.ndarray, design: BagSums) -> int:
    """How many bags the rows form. Raises `InputError` for too few of them."""
    formed = design.formed(len(rows))
    if formed < 1:
        needed = design.records or design.size
        raise InputError(f"{needed} rows must take part, got {len(rows)}; ask for fewer or smaller bags")
    return formed


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


def _noisy(design: BagSums, bags: np.ndarray, bits: NoiseBits) -> np.ndarray:
    """Which rows of the bags get noise on their labels, (m, k) bool."""
    if design.per_bag:
        return stratified_noise(len(bags), design.size, design.per_bag)
    return np.asarray(noisy_rows(design.records, design.noisy, bits)[bags])


def _weights(design: BagSums, formed: int, bits: NoiseBits) -> np.ndarray:
    drawn = sign_weights if design.weights == "signs" else gaussian_weights
    return drawn(formed, design.size, bits)
