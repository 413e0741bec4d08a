"""The worst pairs of votes, end to end: parties train and vote, and the aggregator's own code counts.

Votes that leave a weakly regularised risk flat: how far they move its minimiser, by an independent solver. The worst
pairs of vectors in a sum: one party's ends of the ball, as its own code computes them.
"""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from support.questions import QUESTIONS
from support.worst_pairs import pair_of, without_noise

from aggregator.contract.worst_case import SummedWorstCase
from aggregator.ensembles.worst_case import PARTIES, FlatRisk, flat_risk, flat_votes, worst_parameters, worst_shares
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.features.feature_map import FeatureMap
from federation.mechanisms.accounting.sensitivity import radius
from federation.queries.votes import Training, VotesQuestion
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


def sides(chosen):
    """What gets noise on either side of the worst pair, and how far apart they are."""
    before, after = (perturbable(worst(chosen), chosen, 1.0, DELTA, there) for there in (False, True))
    assert before.sensitivity == after.sensitivity
    return before.sensitivity, np.linalg.norm(before.value - after.value)


@pytest.mark.parametrize("name", ATTAINED)
def test_the_pair_is_as_far_apart_as_the_sensitivity_that_is_charged_and_not_said_to_be_loose(name):
    kind, options = ATTAINED[name]
    sensitivity, distance = sides(variant(kind, **options))
    assert 0.98 * sensitivity < distance <= sensitivity
    assert worst(variant(kind, **options)).loose == ""


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
    charged, distance = sides(chosen)
    assert distance <= most * 1.001 <= charged / 2 * 1.002
    said = re.fullmatch(
        r"with two classes no data move what gets noise by more than (\S+), and (\S+) is charged, so that half of the "
        r"noise would keep the claim, too",
        worst(chosen).loose,
    )
    assert [float(number) for number in said.groups()] == pytest.approx([most, charged], rel=1e-3)


@pytest.mark.parametrize("name", WEAK)
def test_weakly_regularised_minimisers_are_as_far_apart_as_flat_risks_let_them(name):
    options, least = WEAK[name]
    sensitivity, distance = sides(variant("soft_vote", perturb="output", **options))
    assert least < distance / sensitivity <= 1


@pytest.mark.parametrize("chosen", [
    variant("soft_vote", submit="votes"), variant("soft_vote", perturb="output", regularisation=1.0),
    variant("majority_vote"),
])  # fmt: skip
def test_one_party_changes_and_tips_every_majority(chosen):
    (before, held), (after, there) = ensembles(chosen)
    assert (held != there).sum() == 1
    assert (np.abs(before.tally.counts - after.tally.counts) == 1).all()
    assert (before.tally.majority() != after.tally.majority()).all()
    assert before.answered == after.answered == PARTIES
    np.testing.assert_array_equal(before.public.rows, after.public.rows)


def test_one_row_or_one_party_changes_and_half_of_the_shares_are_missing_in_the_twin():
    (before, held), (after, there) = ensembles(variant("soft_vote", perturb="output", protect=BOTH))
    assert (before.public.rows != after.public.rows).all(axis=1).sum() == 1
    np.testing.assert_array_equal(held, there)
    np.testing.assert_array_equal(before.tally.counts, after.tally.counts)
    for side in (before, after):
        side.public.require_unfitted()
    flat = flat_risk(1e-4)
    assert flat is not None
    here, there = (flat_votes(flat, 1).sent(side, asked(flat))["votes"] for side in (False, True))
    assert here.shape == (flat.parties, len(flat.rows))
    np.testing.assert_array_equal(here[1:], there[1:])
    assert (here[0] != there[0]).tolist() == [True] * (len(flat.rows) - 1) + [False]
    assert flat_risk(1.0) is None
    assert flat_risk(100.0) is None
    question = replace(QUESTIONS["statistic_sum"], contributors=5)
    assert [worst_shares(units).parties(question, 10) for units in (1, 2)] == [5, 2]
    with pytest.raises(InputError):
        worst_shares(1).parties(QUESTIONS["counts"], 1)
    assert "with two classes no data move" in worst_parameters(1, clip=1000.0).loose
    assert not worst_parameters(1, clip=50.0).loose
    worst = worst_parameters(1, clip=None)
    here, there = (worst.side(side, replace(QUESTIONS["parameter_sum"], contributors=4), 1) for side in (False, True))
    assert [one.labels[0] for one in here] == [0, 1, 0, 1]
    assert [one.labels[0] for one in there] == [1, 1, 0, 1]


def asked(flat: FlatRisk) -> VotesQuestion:
    """For the votes on all its rows."""
    return VotesQuestion(Training(FeatureMap(2, ()), 2, {"name": "logistic", "parameters": {}}, 0), flat.rows)


def moved(flat: FlatRisk, lam: float) -> float:
    """The distance of both minimisers as a part of 1/(M lam), by Newton's method of another library."""
    pair = flat_votes(flat, 1000)
    found = []
    for there in (False, True):
        alpha = pair.sent(there, asked(flat))["votes"].mean(axis=0)  # the part of the parties for the second class

        def risk(w, alpha=alpha):
            scores = pair.public @ w
            return np.mean(np.logaddexp(0, scores) - alpha * scores) + lam / 2 * w @ w

        def gradient(w, alpha=alpha):
            return pair.public.T @ (1 / (1 + np.exp(-pair.public @ w)) - alpha) / len(alpha) + lam * w

        def hessian(w):
            slope = 1 / (2 + 2 * np.cosh(pair.public @ w))
            return (pair.public.T * slope) @ pair.public / len(slope) + lam * np.eye(2)

        start = np.array([0.0, flat.norm])
        solved = minimize(risk, start, jac=gradient, hess=hessian, method="trust-exact", options={"gtol": 1e-13})
        found.append(solved.x)
    return float(np.linalg.norm(found[0] - found[1]) * flat.parties * lam)


@pytest.mark.parametrize(("lam", "least"), [(1e-3, 0.35), (1e-4, 0.65), (1e-6, 0.9)])
def test_one_party_moves_the_minimiser_as_far_as_is_said(lam: float, least: float) -> None:
    flat = flat_risk(lam)
    assert flat is not None
    assert flat.attained > least
    assert moved(flat, lam) == pytest.approx(flat.attained, rel=0.02)


@settings(derandomize=True)
@given(log_lam=st.floats(-8.0, -2.0))
def test_rows_are_no_longer_than_1_and_the_minimiser_no_longer_than_any(log_lam: float) -> None:
    lam = 10.0**log_lam
    flat = flat_risk(lam)
    if flat is None:
        assert log_lam > -2.5
        return
    norms = np.linalg.norm(flat.rows, axis=1)
    assert norms[:-1] == pytest.approx(1)
    assert norms[-1] <= 1
    assert len(norms) == 2 * flat.copies + 1
    assert flat.norm <= radius(lam, 2)
    assert 0 < flat.attained < 1
    assert flat.score < flat.norm


ATTAINED_WORST_VECTORS = {
    "default": ("soft_vote", {}),
    "isotropic": ("soft_vote", {"shape": "isotropic"}),
    "probabilities": ("soft_vote", {"share": "probabilities"}),
    "scores": ("soft_vote", {"share": "scores"}),
    "raw": ("soft_vote", {"share": "raw"}),
    "ballots": ("soft_vote", {"share": "raw", "ballot": "probabilities", "decoder": "erm"}),
    "unit": ("parameter_average", {}),
    "clipped": ("parameter_average", {"average": "clipped"}),
    "clip": ("parameter_average", {"average": "clipped", "clip": 3.0}),
    "plain": ("parameter_average", {"average": "plain"}),
}


@pytest.mark.parametrize("name", ATTAINED_WORST_VECTORS)
def test_the_sides_are_as_far_apart_as_is_charged(name):
    kind, options = ATTAINED_WORST_VECTORS[name]
    pair = pair_of(kind, {**options, "trust": "secure"}, PublicNumbers(1e-6))
    assert isinstance(pair.worst, SummedWorstCase)
    assert pair.question.contributors == len(pair.held(False)) == 3
    here, there = (without_noise(pair, 1, side)["vectors"] for side in (False, True))
    assert np.linalg.norm(here - there) == pytest.approx(2 * pair.question.ball.norm, rel=1e-5)
    assert not pair.worst.loose
