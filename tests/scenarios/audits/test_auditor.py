"""The one auditor: claims that stand are tight, broken ones fall, and what it cannot audit it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.worst_pairs import mistake_mechanism, pair_of, variant_of, worst_of

from aggregator.contract.worst_case import Rows, WorstCase
from aggregator.protocols.class_ratio.class_ratio import ClassRatio
from aggregator.protocols.majority_vote import MajorityVote
from aggregator.protocols.parameter_average import ParameterAverage
from aggregator.protocols.soft_vote.soft_vote import SoftVote
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.contract.guarantee import NoGuarantee
from federation.contract.query import PrivateQuestion
from federation.mechanisms.audits import AuditResult
from federation.queries.bags import CountsQuestion
from federation.queries.marginals import MarginalsQuestion
from scenarios.audits.auditor import VariantAudit, audit_variant, begun, claim, perturbable, private_question, sampler
from scenarios.settings.schema import resolve
from scenarios.settings.sweep import variants

TINY = PublicNumbers(1e-6)
RATIOS = PublicNumbers(0.01, classes=3)
REGRESSION = PublicNumbers(0.01, label_range=(-3.0, 7.0))
BY_PARTIES = {  # of every worst case whose noise parties make: kind, options, public numbers, runs
    "counts": ("class_ratio", {}, RATIOS, 20_000),
    "labels": ("private_labels", {}, REGRESSION, 8_000),
    "sums": ("mean_operator", {"noise": "laplace"}, PublicNumbers(0.01), 20_000),
    "shares": ("mean_operator", {"noise": "laplace", "trust": "secure"}, PublicNumbers(0.01), 60_000),
    "exchange": ("error_marginals", {"noise": "pure", "rounds": 2}, PublicNumbers(0.01), 20_000),
}


def vote(**options):
    document = {"data": {"source": "digits"}, "parties": {"count": 50}, "privacy": {"epsilon": 1}}
    [only] = variants(resolve({**document, "protocols": [{"kind": "soft_vote", **options}], "baselines": False}))
    return only


def test_the_default_is_tight_end_to_end_and_half_its_noise_is_caught():
    finding = audit_variant(vote(), 1.0, TINY)
    assert 0.5 < finding.result.lower_bound <= 1.0
    assert finding.twin.lower_bound > 1.0


@pytest.mark.parametrize("delta", [1e-6, 0.01])
def test_gaussian_noise_stands_and_half_of_it_is_caught(delta):
    finding = audit_variant(vote(noise="gaussian"), 1.0, PublicNumbers(delta), 100_000)
    assert 0.8 < finding.result.lower_bound <= 1.0
    assert finding.twin.lower_bound > 1.7
    for result in (finding.result, finding.twin):
        assert result.point.exceeded != result.passed
        assert result.point.claimed > 100 * delta or delta == 0.01


@pytest.mark.parametrize("options", [{}, {"sensitivity": "diameter"}, {"noise": "gaussian"}])
def test_output_perturbation_stands_by_default_and_half_of_its_noise_is_caught(options):
    finding = audit_variant(vote(perturb="output", **options), 1.0, TINY, 150_000)
    assert "10,000 parties" in finding.described
    assert 0.45 < finding.result.lower_bound <= 1.0
    assert finding.word == "stands"
    assert not finding.twin.passed


def test_a_norm_that_nobody_keeps_to_is_refuted_at_a_tiny_delta(monkeypatch):
    """Parties whose parameters are one and a half times as long as the mean charges for."""
    honest = ParameterAverage.prepare

    def prepare(self, answers):
        found = honest(self, answers)
        return replace(found, value=1.5 * found.value)

    monkeypatch.setattr(ParameterAverage, "prepare", prepare)
    finding = audit_variant(variant_of("parameter_average", {"noise": "gaussian"}), 1.0, TINY, 100_000)
    assert finding.word == "REFUTED"


@pytest.mark.parametrize("sensitivity", ["published", "tight"])
def test_output_perturbation_stands(sensitivity):
    finding = audit_variant(vote(perturb="output", sensitivity=sensitivity, regularisation=100.0), 1.0, TINY)
    assert finding.result.passed
    if sensitivity == "tight":
        assert finding.result.lower_bound > 0.5
        assert not finding.twin.passed


@pytest.mark.parametrize("name", BY_PARTIES)
def test_noise_that_parties_make_is_tight_and_half_of_it_is_caught(name):
    kind, options, public, runs = BY_PARTIES[name]
    finding = audit_variant(variant_of(kind, options), 1.0, public, runs)
    assert (finding.variant, finding.described) == ("a variant", worst_of(kind, options, public).described)
    assert (finding.result.claimed, finding.result.runs, finding.result.confidence) == (1.0, runs, 0.999)
    assert 0.5 < finding.result.lower_bound <= 1.0
    assert finding.word == "stands"
    assert not finding.twin.passed


def test_an_audit_has_as_many_runs_as_the_worst_case_needs_and_finds_the_same_each_time():
    chosen = variant_of("class_ratio", {"noise": "pure"})
    first, again = (audit_variant(chosen, 1.0, RATIOS) for _ in (0, 1))
    assert first == again
    assert first.result.runs == worst_of("class_ratio", chosen.options, RATIOS).runs == 100_000
    assert worst_of("private_labels", {"noise": "estimated_bins"}, REGRESSION).runs == 4_000  # each is slow


def test_a_sigma_that_is_too_small_for_any_promise_is_not_audited():
    chosen = variant_of("noisy_weighted_llp", {"size": 2, "weights": "gaussian", "sigma": 0.001})
    assert audit_variant(chosen, 1.0, REGRESSION) is None


def test_a_verdict_admits_that_it_has_no_power():
    weak = audit_variant(vote(perturb="output", sensitivity="published"), 1.0, TINY, runs=2000)
    assert weak.result.passed
    assert weak.word == "stands, no power here"
    assert weak.blind == worst_of("soft_vote", {"perturb": "output", "sensitivity": "published"}, TINY).loose != ""


def test_where_nothing_is_known_to_be_loose_runs_are_too_few():
    result, seen = (AuditResult(bound, 1.0, 0.0, 0.999, 3000, "") for bound in (0.5, 1.5))
    assert "these 3,000 runs are too few" in VariantAudit("v", "a small world", result, result).blind
    assert VariantAudit("v", "a small world", result, result, "no pair shows it").blind == "no pair shows it"
    assert VariantAudit("v", "a small world", result, seen, "no pair shows it").blind == ""


@pytest.mark.parametrize("noise", ["laplace_prior", "independent_laplace", "pure"])
@pytest.mark.parametrize("bags", [0, 1, 3])
def test_sums_over_a_persons_bags_are_said_to_be_loose(noise, bags):
    worst = worst_of("class_ratio", {"noise": noise}, replace(RATIOS, rows_per_person=bags))
    assert bool(worst.loose) == (noise != "pure" and bags == 3)


@pytest.mark.parametrize(
    ("bound", "of_the_twin", "word"),
    [(0.4, 1.1, "stands"), (0.9, 1.0, "stands, no power here"), (1.1, 1.0, "REFUTED"), (1.1, 2.0, "REFUTED")],
)
def test_an_audit_has_power_where_it_refutes_half_of_the_noise(bound, of_the_twin, word):
    result, twin = (
        AuditResult(lower_bound=one, claimed=1.0, delta=0.0, confidence=0.999, runs=1000, event="")
        for one in (bound, of_the_twin)
    )
    assert VariantAudit("v", "a small world", result, twin).word == word


@pytest.mark.parametrize("name", BY_PARTIES)
def test_draws_of_the_two_sides_are_independent_and_the_same_each_time(name):
    pair = pair_of(*BY_PARTIES[name][:3])
    sample = sampler(pair.worst, pair.question)
    here, there, again = (sample(side, 4000) for side in (False, True, False))
    np.testing.assert_array_equal(here, again)
    assert abs(np.corrcoef(here, there)[0, 1]) < 5 / 4000**0.5
    other = sampler(pair.worst, pair.question, "another name")(False, 4000)
    assert abs(np.corrcoef(here, other)[0, 1]) < 5 / 4000**0.5


def less(real):
    """A question's promise of a quarter of the epsilon that its noise is for."""

    def said(self):
        promised = real(self)
        return promised if isinstance(promised, NoGuarantee) else replace(promised, epsilon=promised.epsilon / 4)

    return said


@pytest.mark.parametrize(
    ("question", "method", "kind", "public"),
    [
        (CountsQuestion, "_promised", "class_ratio", RATIOS),
        (MarginalsQuestion, "_paid", "error_marginals", PublicNumbers(0.01)),
    ],
)
def test_answers_that_are_charged_less_than_they_spend_are_refuted(question, method, kind, public, monkeypatch):
    monkeypatch.setattr(question, method, less(getattr(question, method)))
    finding = audit_variant(variant_of(kind, {}), 1.0, public, 20_000)
    assert finding.result.claimed == 0.25
    assert finding.word == "REFUTED"


@pytest.mark.parametrize(
    ("options", "kind", "public"),
    [(ClassRatio, "class_ratio", RATIOS), (SoftVote, "soft_vote", TINY), (ParameterAverage, "parameter_average", TINY)],
)
def test_a_protocol_that_promises_less_beforehand_than_it_spends_is_refuted(options, kind, public, monkeypatch):
    real = options.promise

    def promise(self, *arguments):
        promised = real(self, *arguments)
        return replace(promised, spends=replace(promised.spends, epsilon=promised.spends.epsilon / 4))

    monkeypatch.setattr(options, "promise", promise)
    finding = audit_variant(variant_of(kind, {}), 1.0, public, 20_000)
    assert finding.result.claimed == 0.25
    assert finding.word == "REFUTED"


def test_the_claim_is_the_least_that_is_promised_or_charged():
    chosen = variant_of("class_ratio", {"noise": "gaussian"})
    session = begun(worst_of("class_ratio", chosen.options, RATIOS), chosen, 1.0, 0.01)
    charged = session.guarantee
    assert claim(chosen, 1.0, RATIOS, charged) == (1.0, 0.01)
    assert claim(chosen, 1.0, RATIOS, replace(charged, epsilon=0.5)) == (0.5, 0.01)
    assert claim(chosen, 1.0, RATIOS, replace(charged, epsilon=2.0, delta=0.001)) == (1.0, 0.001)
    assert claim(chosen, 0.7, RATIOS, charged) == (0.7, 0.01)


@pytest.mark.parametrize("protocol", [SoftVote(), MajorityVote(), ParameterAverage()], ids=["soft", "majority", "mean"])
def test_a_sensitivity_that_is_too_small_is_refuted(protocol, monkeypatch):
    """Of what is perturbed, on either side: noise for half of what one party moves."""
    real = type(protocol).prepare

    def prepare(self, answers):
        honest = real(self, answers)
        return replace(honest, sensitivity=honest.sensitivity / 2)

    monkeypatch.setattr(type(protocol), "prepare", prepare)
    kind = {SoftVote: "soft_vote", MajorityVote: "majority_vote"}.get(type(protocol), "parameter_average")
    assert audit_variant(variant_of(kind, {}), 1.0, PublicNumbers(0.01), 20_000).word == "REFUTED"


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("class_ratio", {"noise": "gaussian"}),
        ("class_ratio", {"noise": "dirichlet_shifted", "pseudo_count": 60}),
        ("label_sums", {"noise": "gaussian"}),
        ("mean_operator", {"noise": "gaussian", "trust": "secure"}),
        ("private_labels", {"noise": "gaussian"}),
    ],
)
def test_what_parties_add_at_a_tiny_delta_stands_and_half_of_it_is_caught(kind, options):
    public = PublicNumbers(1e-6, classes=3, label_range=(-3.0, 7.0))
    finding = audit_variant(variant_of(kind, options), 1.0, public, 8_000 if kind == "private_labels" else 60_000)
    assert finding.word == "stands"
    assert finding.result.point is not None


def test_labels_of_one_person_in_several_bags_have_the_curve_of_all(monkeypatch):
    public = PublicNumbers(1e-6, classes=2, rows_per_person=2)
    finding = audit_variant(variant_of("class_ratio", {"noise": "gaussian"}), 1.0, public, 60_000)
    assert finding.word == "stands"
    [question] = [
        asked.question
        for asked in begun(
            worst_of("class_ratio", {"noise": "gaussian"}, public), variant_of("class_ratio", {"noise": "gaussian"}),
            1.0, 1e-6,
        ).questions()
        if isinstance(asked.question, PrivateQuestion)
    ]  # fmt: skip
    assert 0 < question.curve()(1.0) < 1e-6  # as two releases with half of the epsilon have less than the sum


def test_parties_with_half_of_their_noise_are_refuted(monkeypatch):
    mistake_mechanism(monkeypatch, lambda question: replace(question.mechanism(), scale=question.mechanism().scale / 2))
    assert audit_variant(variant_of("class_ratio", {"noise": "pure"}), 1.0, RATIOS, 20_000).word == "REFUTED"


def test_protocols_that_ask_nothing_private_are_refused(monkeypatch):
    """Votes go to an aggregator that makes the noise; parties that would make it do not exist there."""
    monkeypatch.setattr(SoftVote, "worst_case", lambda self, *arguments: ClassRatio().worst_case(*arguments))
    with pytest.raises(InputError, match="needs one private question in the first round, got 0"):
        audit_variant(vote(), 1.0, RATIOS)


def test_a_worst_case_of_no_known_kind_is_refused(monkeypatch):
    class Other(WorstCase):
        """Neither parties nor the aggregator make noise."""

        def side(self, there, question, runs):
            return ()

    monkeypatch.setattr(SoftVote, "worst_case", lambda self, units, public: Other("a world", np.eye(1), 1))
    with pytest.raises(InputError, match="the worst case of 'soft_vote' is of no kind that can be audited"):
        audit_variant(vote(), 1.0, TINY)


def test_of_several_questions_the_private_one_is_audited(monkeypatch):
    chosen = variant_of("mean_operator", {"noise": "pure", "unlabelled": "own"})
    worst = worst_of("mean_operator", chosen.options, TINY)
    session = begun(worst, chosen, 1.0, 1e-6)
    asked = [one.question for one in begun(worst, chosen, 1.0, 1e-6).questions()]
    assert sorted(isinstance(question, PrivateQuestion) for question in asked) == [False, True]
    assert private_question(session).kind == "mean_operator"
    two = begun(worst, chosen, 1.0, 1e-6)
    real = two.questions()
    monkeypatch.setattr(two, "questions", lambda: [*real, *real])
    with pytest.raises(InputError, match="got 2"):
        private_question(two)


def test_a_session_that_has_nothing_to_perturb_is_refused():
    chosen, worst = variant_of("label_sums", {}), worst_of("soft_vote", {}, TINY)
    real = {"classes": (), "label_range": (0.0, 1.0), "largest_bag": 1, "smallest_bag": 1}
    fitting = replace(worst, world={**worst.world, **real})
    with pytest.raises(InputError, match="LabelSession has nothing to perturb"):
        perturbable(fitting, chosen, 1.0, 0.01, False)


def test_a_party_that_fails_ends_an_audit_and_says_why():
    pair = pair_of("private_labels", {}, REGRESSION)
    many = replace(pair.worst, rows=2 * pair.worst.rows)
    with pytest.raises(InputError, match=r"a party of the worst case fails: .* 8 rows, declared are at most 4"):
        sampler(many, pair.question)(False, 10)


def test_an_answer_that_is_refused_ends_an_audit_and_says_why(monkeypatch):
    worst = worst_of("soft_vote", {}, TINY)
    answers = type(worst).side(worst, False, None, 1)
    too_many = tuple(Rows(answers[0].rows, answers[0].labels) for _ in range(6))
    monkeypatch.setattr(type(worst), "side", lambda self, there, question, runs: too_many)
    with pytest.raises(InputError, match="refused: not one of the 5 declared parties"):
        perturbable(worst, vote(), 1.0, 1e-6, False)
