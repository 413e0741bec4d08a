"""The worst pairs of votes, end to end: parties train and vote, and the aggregator's own code counts."""

import re

import numpy as np
import pytest

from aggregator.ensembles.worst_case import PARTIES
from aggregator.trial.plan import PublicNumbers
from parties.guard.answering import answered
from scenarios.audits.auditor import begun, chosen_of, cohort, perturbable
from scenarios.settings.sweep import Variant

BOTH = "party_and_auxiliary_row"
DELTA = 1e-6

ATTAINED = {
    "default": ("soft_vote", {}),
    "unit isotropic": ("soft_vote", {"shape": "isotropic"}),
    "probability shares": ("soft_vote", {"share": "probabilities"}),
    "score shares": ("soft_vote", {"share": "scores"}),
    "votes": ("soft_vote", {"submit": "votes"}),
    "isotropic": ("soft_vote", {"submit": "votes", "shape": "isotropic"}),
    "discrepancy": ("soft_vote", {"submit": "votes", "decoder": "discrepancy"}),
    "noisy votes": ("soft_vote", {"perturb": "votes", "noise": "gaussian"}),
    "tight": ("soft_vote", {"perturb": "output", "regularisation": 1000.0}),
    "public features": (
        "soft_vote",
        {"perturb": "output", "sensitivity": "public_features", "regularisation": 1000.0},
    ),
    "shares": ("soft_vote", {"share": "raw"}),
    "probabilities": ("soft_vote", {"submit": "votes", "ballot": "probabilities"}),
    "majority public features": ("majority_vote", {"sensitivity": "public_features", "regularisation": 1000.0}),
    "majority diameter": ("majority_vote", {}),
    "majority diameter, strong": ("majority_vote", {"regularisation": 5.0}),
    "majority public features, diameter": ("majority_vote", {"sensitivity": "public_features"}),
    "row too": ("soft_vote", {"perturb": "output", "protect": BOTH, "regularisation": 1000.0}),
    "row too, majority": ("majority_vote", {"protect": BOTH, "regularisation": 1000.0}),
    "row too, diameter": ("soft_vote", {"perturb": "output", "protect": BOTH, "sensitivity": "diameter"}),
    "row too, majority diameter": ("majority_vote", {"protect": BOTH}),
    "parameters": ("parameter_average", {}),
}
WEAK = {  # at the default regularisation: what part of the sensitivity is attained, at least
    "tight": ({}, 0.66),
    "diameter": ({"sensitivity": "diameter"}, 0.66),
    "public features": ({"sensitivity": "public_features"}, 0.85),
    "published": ({"sensitivity": "published"}, 0.33),
}


def variant(kind, **options):
    return Variant(kind, kind, options, {}, False)


def worst(chosen):
    return chosen_of(chosen).worst_case(1, PublicNumbers(DELTA))


def ensembles(chosen):
    """What the aggregator has collected on either side, and the classes that its parties are of."""
    case = worst(chosen)
    for there in (False, True):
        [asked] = begun(case, chosen, 1.0, DELTA, there).questions()
        held = case.side(there, asked.question, 1)
        with cohort(held, len(held)) as node:
            assert asked.collector.add(answered(node, asked.question)) == {}
        yield asked.collector, np.concatenate([one.labels for one in held])


@pytest.mark.parametrize("name", ATTAINED)
def test_the_pair_is_as_far_apart_as_the_sensitivity_that_is_charged(name):
    kind, options = ATTAINED[name]
    chosen = variant(kind, **options)
    before, after = (perturbable(worst(chosen), chosen, 1.0, DELTA, there) for there in (False, True))
    distance = np.linalg.norm(before.value - after.value)
    assert before.sensitivity == after.sensitivity
    assert 0.98 * before.sensitivity < distance <= before.sensitivity


LOOSE = {  # what no data reach half of, and what they do reach, at the regularisation of the audit
    "published": ("soft_vote", {"perturb": "output", "sensitivity": "published", "regularisation": 5.0}, 1 / 25),
    "published, majority": ("majority_vote", {"sensitivity": "published", "regularisation": 5.0}, 0.1905),
    "tight, majority": ("majority_vote", {"sensitivity": "tight"}, 105.5),
    "row too": ("soft_vote", {"perturb": "output", "protect": BOTH}, 105.5),
    "row too, published majority": ("majority_vote", {"protect": BOTH, "sensitivity": "published"}, 105.5),
    "published average": ("parameter_average", {"average": "plain", "sensitivity": "published"}, 21.11),
    "tight average": ("parameter_average", {"average": "plain", "sensitivity": "tight"}, 21.11),
}


@pytest.mark.parametrize("name", LOOSE)
def test_where_half_of_the_noise_would_do_the_pair_says_so(name):
    kind, options, most = LOOSE[name]
    chosen = variant(kind, **options)
    before, after = (perturbable(worst(chosen), chosen, 1.0, DELTA, there) for there in (False, True))
    distance, charged = np.linalg.norm(before.value - after.value), before.sensitivity
    assert distance <= most * 1.001 <= charged / 2 * 1.002
    said = re.fullmatch(
        r"with two classes no data move what gets noise by more than (\S+), and (\S+) is charged, so that half of the "
        r"noise would keep the claim, too",
        worst(chosen).loose,
    )
    assert [float(number) for number in said.groups()] == pytest.approx([most, charged], rel=1e-3)


@pytest.mark.parametrize("name", ATTAINED)
def test_pairs_that_show_what_is_charged_are_not_said_to_be_loose(name):
    kind, options = ATTAINED[name]
    assert worst(variant(kind, **options)).loose == ""


@pytest.mark.parametrize("name", WEAK)
def test_weakly_regularised_minimisers_are_as_far_apart_as_flat_risks_let_them(name):
    options, least = WEAK[name]
    chosen = variant("soft_vote", perturb="output", **options)
    before, after = (perturbable(worst(chosen), chosen, 1.0, DELTA, there) for there in (False, True))
    assert before.sensitivity == after.sensitivity
    assert least < np.linalg.norm(before.value - after.value) / before.sensitivity <= 1


@pytest.mark.parametrize(
    "chosen",
    [
        variant("soft_vote", submit="votes"),
        variant("soft_vote", perturb="output", regularisation=1.0),
        variant("majority_vote"),
    ],
)
def test_one_party_changes_and_tips_every_majority(chosen):
    (before, held), (after, there) = ensembles(chosen)
    assert (held != there).sum() == 1
    assert (np.abs(before.tally.counts - after.tally.counts) == 1).all()
    assert (before.tally.majority() != after.tally.majority()).all()
    assert before.answered == after.answered == PARTIES
    np.testing.assert_array_equal(before.public.rows, after.public.rows)


def test_with_a_protected_row_one_row_changes_and_no_more_than_all_votes_on_it():
    (before, held), (after, there) = ensembles(variant("soft_vote", perturb="output", protect=BOTH))
    assert (before.public.rows != after.public.rows).all(axis=1).sum() == 1
    np.testing.assert_array_equal(held, there)
    np.testing.assert_array_equal(before.tally.counts, after.tally.counts)
    for side in (before, after):
        side.public.require_unfitted()
