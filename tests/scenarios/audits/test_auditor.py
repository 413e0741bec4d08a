"""The one auditor: claims that stand are tight, broken ones fall, and it refuses what it cannot audit."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.refusals import refused
from support.worst_pairs import mistake_mechanism, pair_of, variant_of, worst_of

from aggregator.contract.worst_case import Rows, WorstCase
from aggregator.protocols.class_ratio.class_ratio import ClassRatio
from aggregator.protocols.majority_vote import MajorityVote
from aggregator.protocols.parameter_average import ParameterAverage
from aggregator.protocols.soft_vote.soft_vote import SoftVote
from aggregator.trial.plan import PublicNumbers
from federation.contract.guarantee import NoGuarantee
from federation.contract.query import PrivateQuestion
from federation.mechanisms.audits import AuditResult, CurvePoint
from federation.queries.bags import CountsQuestion
from federation.queries.marginals import MarginalsQuestion
from scenarios.audits import auditor
from scenarios.settings.schema import resolve
from scenarios.settings.sweep import variants

TINY = PublicNumbers(1e-6)
RATIOS = PublicNumbers(0.01, classes=3)
REGRESSION = PublicNumbers(0.01, label_range=(-3.0, 7.0))
BY_PARTIES = {  # of every worst case whose noise parties make: kind, options, public numbers, runs
    "counts": ("class_ratio", {}, RATIOS, 20_000),
    "labels": ("private_labels", {}, REGRESSION, 4_000),
    "sums": ("mean_operator", {"noise": "laplace"}, PublicNumbers(0.01), 20_000),
    "shares": ("mean_operator", {"noise": "laplace", "trust": "secure"}, PublicNumbers(0.01), 30_000),
    "exchange": ("error_marginals", {"noise": "pure", "rounds": 2}, PublicNumbers(0.01), 20_000),
}


def vote(**options):
    document = {"data": {"source": "digits"}, "parties": {"count": 50}, "privacy": {"epsilon": 1}}
    [only] = variants(resolve({**document, "protocols": [{"kind": "soft_vote", **options}], "baselines": False}))
    return only


def found(bound, epsilon=1.0):
    return AuditResult(lower_bound=bound, claimed=epsilon, delta=0.0, confidence=0.999, runs=3000, event="")


def test_the_default_is_tight_end_to_end_and_half_its_noise_is_caught():
    finding = auditor.audit_variant(vote(), 1.0, TINY)
    assert 0.5 < finding.result.lower_bound <= 1.0
    assert finding.twin.lower_bound > 1.0


@pytest.mark.parametrize("delta", [1e-6, pytest.param(0.01, marks=pytest.mark.slow)])
def test_gaussian_noise_stands_and_half_of_it_is_caught(delta):
    finding = auditor.audit_variant(vote(noise="gaussian"), 1.0, PublicNumbers(delta), 100_000)
    assert 0.8 < finding.result.lower_bound <= 1.0
    assert finding.twin.lower_bound > 1.7
    for result in (finding.result, finding.twin):
        assert result.point.exceeded != result.passed
        assert result.point.claimed > 100 * delta or delta == 0.01


DIAMETER = pytest.param({"sensitivity": "diameter"}, marks=pytest.mark.slow)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, DIAMETER, {"noise": "gaussian"}])
def test_output_perturbation_stands_by_default_and_half_of_its_noise_is_caught(options):
    finding = auditor.audit_variant(vote(perturb="output", **options), 1.0, TINY, 150_000)
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
    finding = auditor.audit_variant(variant_of("parameter_average", {"noise": "gaussian"}), 1.0, TINY, 100_000)
    assert finding.word == "REFUTED"


@pytest.mark.slow
@pytest.mark.parametrize("sensitivity", ["published", "tight"])
def test_output_perturbation_stands(sensitivity):
    finding = auditor.audit_variant(vote(perturb="output", sensitivity=sensitivity, regularisation=100.0), 1.0, TINY)
    assert finding.result.passed
    if sensitivity == "tight":
        assert finding.result.lower_bound > 0.5
        assert not finding.twin.passed


@pytest.mark.parametrize("name", BY_PARTIES)
def test_noise_that_parties_make_is_tight_and_half_of_it_is_caught(name):
    kind, options, public, runs = BY_PARTIES[name]
    finding = auditor.audit_variant(variant_of(kind, options), 1.0, public, runs)
    assert (finding.variant, finding.described) == ("a variant", worst_of(kind, options, public).described)
    assert (finding.result.claimed, finding.result.runs, finding.result.confidence) == (1.0, runs, 0.999)
    assert 0.5 < finding.result.lower_bound <= 1.0
    assert finding.word == "stands"
    assert not finding.twin.passed


def test_an_audit_has_as_many_runs_as_the_worst_case_needs_and_finds_the_same_each_time():
    chosen = variant_of("class_ratio", {"noise": "pure"})
    first, again = (auditor.audit_variant(chosen, 1.0, RATIOS) for _ in (0, 1))
    assert first == again
    assert first.result.runs == worst_of("class_ratio", chosen.options, RATIOS).runs == 100_000
    assert worst_of("private_labels", {"noise": "estimated_bins"}, REGRESSION).runs == 4_000  # each is slow


def test_a_verdict_admits_that_it_has_no_power():
    weak = auditor.audit_variant(vote(perturb="output", sensitivity="published"), 1.0, TINY, runs=2000)
    assert weak.result.passed
    assert weak.word == "stands, no power here"
    assert weak.blind == worst_of("soft_vote", {"perturb": "output", "sensitivity": "published"}, TINY).loose != ""


@pytest.mark.parametrize("noise", ["laplace_prior", "independent_laplace", "pure"])
@pytest.mark.parametrize("bags", [0, 1, 3])
def test_sums_over_a_persons_bags_are_said_to_be_loose(noise, bags):
    worst = worst_of("class_ratio", {"noise": noise}, replace(RATIOS, rows_per_person=bags))
    assert bool(worst.loose) == (noise != "pure" and bags == 3)


@pytest.mark.parametrize(
    ("bound", "of_the_twin", "word"),
    [(0.4, 1.1, "stands"), (0.9, 1.0, "stands, no power here"), (1.1, 1.0, "REFUTED"), (1.1, 2.0, "REFUTED")],
)
def test_an_audit_has_power_where_it_refutes_half_of_the_noise_and_says_else_why_not(bound, of_the_twin, word):
    finding = auditor.VariantAudit("v", "a small world", found(bound), found(of_the_twin))
    assert finding.word == word
    blind = of_the_twin <= 1.0
    assert ("these 3,000 runs are too few" in finding.blind) is blind
    assert replace(finding, loose="no pair shows it").blind == ("no pair shows it" if blind else "")


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_PARTIES)
def test_draws_of_the_two_sides_are_independent_and_the_same_each_time(name):
    pair = pair_of(*BY_PARTIES[name][:3])
    sample = auditor.sampler(pair.worst, pair.question)
    here, there, again = (sample(side, 4000) for side in (False, True, False))
    np.testing.assert_array_equal(here, again)
    assert abs(np.corrcoef(here, there)[0, 1]) < 5 / 4000**0.5
    other = auditor.sampler(pair.worst, pair.question, "another name")(False, 4000)
    assert abs(np.corrcoef(here, other)[0, 1]) < 5 / 4000**0.5


def less(real):
    """A promise of a quarter of the epsilon that the noise is for: of a question, or of a protocol beforehand."""

    def promise(self, *arguments):
        promised = real(self, *arguments)
        if isinstance(promised, NoGuarantee):
            return promised
        if hasattr(promised, "spends"):
            return replace(promised, spends=replace(promised.spends, epsilon=promised.spends.epsilon / 4))
        return replace(promised, epsilon=promised.epsilon / 4)

    return promise


@pytest.mark.parametrize(
    ("changed", "method", "kind", "public"),
    [
        (CountsQuestion, "_promised", "class_ratio", RATIOS),
        (MarginalsQuestion, "_paid", "error_marginals", PublicNumbers(0.01)),
        (ClassRatio, "promise", "class_ratio", RATIOS),
        (SoftVote, "promise", "soft_vote", TINY),
        (ParameterAverage, "promise", "parameter_average", TINY),
    ],
)
def test_answers_and_plans_that_are_charged_less_than_they_spend_are_refuted(
    changed, method, kind, public, monkeypatch
):
    monkeypatch.setattr(changed, method, less(getattr(changed, method)))
    finding = auditor.audit_variant(variant_of(kind, {}), 1.0, public, 20_000)
    assert finding.result.claimed == 0.25
    assert finding.word == "REFUTED"


def test_the_claim_is_the_least_that_is_promised_or_charged():
    chosen = variant_of("class_ratio", {"noise": "gaussian"})
    session = auditor.begun(worst_of("class_ratio", chosen.options, RATIOS), chosen, 1.0, 0.01)
    charged = session.guarantee
    assert auditor.claim(chosen, 1.0, RATIOS, charged) == (1.0, 0.01)
    assert auditor.claim(chosen, 1.0, RATIOS, replace(charged, epsilon=0.5)) == (0.5, 0.01)
    assert auditor.claim(chosen, 1.0, RATIOS, replace(charged, epsilon=2.0, delta=0.001)) == (1.0, 0.001)
    assert auditor.claim(chosen, 0.7, RATIOS, charged) == (0.7, 0.01)


@pytest.mark.parametrize(
    ("protocol", "kind"),
    [(SoftVote, "soft_vote"), (MajorityVote, "majority_vote"), (ParameterAverage, "parameter_average")],
)
def test_a_sensitivity_that_is_too_small_is_refuted(protocol, kind, monkeypatch):
    """Of what is perturbed, on either side: noise for half of what one party moves."""
    real = protocol.prepare

    def prepare(self, answers):
        honest = real(self, answers)
        return replace(honest, sensitivity=honest.sensitivity / 2)

    monkeypatch.setattr(protocol, "prepare", prepare)
    assert auditor.audit_variant(variant_of(kind, {}), 1.0, PublicNumbers(0.01), 20_000).word == "REFUTED"


@pytest.mark.slow
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
    finding = auditor.audit_variant(
        variant_of(kind, options), 1.0, public, 8_000 if kind == "private_labels" else 60_000
    )
    assert finding.word == "stands"
    assert finding.result.point is not None


@pytest.mark.slow
def test_labels_of_one_person_in_several_bags_have_the_curve_of_all():
    public = PublicNumbers(1e-6, classes=2, rows_per_person=2)
    variant = variant_of("class_ratio", {"noise": "gaussian"})
    assert auditor.audit_variant(variant, 1.0, public, 60_000).word == "stands"
    question = auditor.private_question(
        auditor.begun(worst_of("class_ratio", variant.options, public), variant, 1.0, 1e-6)
    )
    assert 0 < question.curve()(1.0) < 1e-6  # as two releases with half of the epsilon have less than the sum


def test_parties_with_half_of_their_noise_are_refuted(monkeypatch):
    mistake_mechanism(monkeypatch, lambda question: replace(question.mechanism(), scale=question.mechanism().scale / 2))
    assert auditor.audit_variant(variant_of("class_ratio", {"noise": "pure"}), 1.0, RATIOS, 20_000).word == "REFUTED"


class Other(WorstCase):
    """Neither parties nor the aggregator make noise."""

    def side(self, there, question, runs):
        return ()


@pytest.mark.parametrize(
    ("worst_case", "public", "said"),
    [
        # Votes go to an aggregator that makes the noise; parties that would make it do not exist there.
        (lambda self, *known: ClassRatio().worst_case(*known), RATIOS, "0"),
        (lambda self, *known: Other("a world", np.eye(1), 1), TINY, "soft_vote"),
    ],
    ids=["nothing private is asked", "a worst case of no known kind"],
)
def test_worst_cases_that_do_not_fit_are_refused(monkeypatch, worst_case, public, said):
    monkeypatch.setattr(SoftVote, "worst_case", worst_case)
    refused(said, auditor.audit_variant, vote(), 1.0, public)


def test_of_several_questions_the_private_one_is_audited_and_nothing_to_perturb_is_refused(monkeypatch):
    chosen = variant_of("mean_operator", {"noise": "pure", "unlabelled": "own"})
    worst = worst_of("mean_operator", chosen.options, TINY)
    session = auditor.begun(worst, chosen, 1.0, 1e-6)
    asked = [one.question for one in auditor.begun(worst, chosen, 1.0, 1e-6).questions()]
    assert sorted(isinstance(question, PrivateQuestion) for question in asked) == [False, True]
    assert auditor.private_question(session).kind == "mean_operator"
    two = auditor.begun(worst, chosen, 1.0, 1e-6)
    real = two.questions()
    monkeypatch.setattr(two, "questions", lambda: [*real, *real])
    refused("2", auditor.private_question, two)
    chosen, worst = variant_of("label_sums", {}), worst_of("soft_vote", {}, TINY)
    real = {"classes": (), "label_range": (0.0, 1.0), "largest_bag": 1, "smallest_bag": 1}
    fitting = replace(worst, world={**worst.world, **real})
    refused("QuerySession", auditor.perturbable, fitting, chosen, 1.0, 0.01, False)


def test_parties_that_fail_or_answer_too_often_end_an_audit_and_say_why(monkeypatch):
    pair = pair_of("private_labels", {}, REGRESSION)
    many = replace(pair.worst, rows=2 * pair.worst.rows)
    refused(r"8.*4", auditor.sampler, many, pair.question)
    worst = worst_of("soft_vote", {}, TINY)
    answers = type(worst).side(worst, False, None, 1)
    too_many = tuple(Rows(answers[0].rows, answers[0].labels) for _ in range(6))
    monkeypatch.setattr(type(worst), "side", lambda self, there, question, runs: too_many)
    refused("5", auditor.perturbable, worst, vote(), 1.0, 1e-6, False)


PRIVACY = "privacy: {epsilon: [0.1, 1, 30], delta: 1.0e-6}\n"
VOTES = "baselines: false\ndata: {source: digits}\nparties: {count: 9}\nprivacy: {epsilon: 1}\n"
RATIOS_AUDIT_SCENARIO = f"baselines: false\ndata: {{source: digits}}\nparties: {{count: 9}}\n{PRIVACY}"
REGRESSIONS = f"baselines: false\ndata: {{source: diabetes}}\nparties: {{count: 2}}\n{PRIVACY}"
TWO_CLASSES = f"baselines: false\ndata: {{source: breast_cancer}}\nparties: {{count: 4}}\n{PRIVACY}"
ROW = json.dumps({
    "kind": "class_ratio", "noise": "gaussian", "protect": "row", "submit": "embedding", "estimator": "whitened"
})  # fmt: skip
SMALL = "{kind: noisy_weighted_llp, size: 2, weights: gaussian, sigma: 0.001}"


@pytest.fixture
def audited(tmp_path, capsys):
    """The exit code and what is printed about variants of protocols: records, or the words of the table."""

    def of(head, protocols, runs, as_json=True):
        path = tmp_path / "s.yaml"
        path.write_text(f"{head}protocols:\n" + "".join(f"  - {entry}\n" for entry in protocols))
        code = auditor.audit_scenario(str(path), as_json, runs)
        out = capsys.readouterr().out
        if not as_json:
            return code, " ".join(out.split())
        records = json.loads(out)
        assert len({tuple(record) for record in records}) == 1  # all have the same keys
        return code, {record["variant"]: record for record in records}

    return of


def exposed(found):
    return {name for name, record in found.items() if record["verdict"] == "NON-PRIVATE"}


@pytest.mark.slow
def test_private_variants_of_class_ratios_are_audited_and_all_others_listed(audited):
    entries = [
        "{kind: class_ratio}",
        "{kind: class_ratio, noise: [gaussian, published_dirichlet, 'off']}",
        ROW,
        "{kind: pooled}",
    ]
    code, found = audited(RATIOS_AUDIT_SCENARIO, entries, 10_000)
    assert code == 0
    [row] = [name for name in found if name.endswith("-row")]
    assert exposed(found) == {"class_ratio-published_dirichlet", "class_ratio-off", "pooled"}
    assert found["pooled"]["claim_stands"] is None
    tight = found["class_ratio"]  # pure, by its own choice
    assert (tight["epsilon"], tight["delta"], tight["verdict"]) == (1.0, 0.0, "stands")
    assert 0.5 < tight["lower_bound"] <= 1.0
    assert tight["half_the_noise_caught"]
    assert tight["tested_epsilon"] is None
    for name in ("class_ratio-gaussian", row):  # at a point of its curve whose delta is larger than 1e-6
        assert (found[name]["delta"], found[name]["verdict"]) == (1e-6, "stands")
        assert found[name]["half_the_noise_caught"]
        assert found[name]["tested_delta_bound"] <= found[name]["tested_delta"]
        assert 0 <= found[name]["tested_epsilon"] <= 1


@pytest.mark.slow
def test_a_delta_that_can_be_tested_gives_power(audited):
    head = RATIOS_AUDIT_SCENARIO.replace("1.0e-6", "0.05")
    code, found = audited(head, ["{kind: class_ratio, noise: [gaussian, laplace]}", ROW], 10_000)
    assert code == 0
    assert {record["verdict"] for record in found.values()} == {"stands"}
    assert all(record["half_the_noise_caught"] for record in found.values())


@pytest.mark.slow
def test_private_variants_of_regressions_are_audited_and_all_others_listed(audited):
    entries = [
        "{kind: label_sums, noise: [auto, 'off']}",
        "{kind: private_labels, noise: [auto, gaussian]}",
        "{kind: weighted_lba, size: 2, noise: [gaussian, published]}",
        "{kind: pooled}",
        SMALL,
    ]
    code, found = audited(REGRESSIONS, entries, 4000)
    assert code == 5
    assert {"label_sums-off", "weighted_lba-size=2-published", "pooled"} < exposed(found)
    assert len(exposed(found)) == 4  # and the sigma that is too small
    for name in ("label_sums", "private_labels"):  # pure
        assert (found[name]["epsilon"], found[name]["delta"], found[name]["verdict"]) == (1.0, 0.0, "stands")
        assert found[name]["half_the_noise_caught"]
    gaussian, weak = found["private_labels-gaussian"], found["weighted_lba-size=2"]  # which so few runs tell nothing of
    assert (gaussian["delta"], gaussian["verdict"]) == (1e-6, "stands")
    assert (weak["delta"], weak["verdict"], weak["half_the_noise_caught"]) == (1e-6, "stands, no power here", False)


@pytest.mark.slow
def test_a_mixed_scenario_is_audited_by_what_each_variant_protects(audited):
    entries = [
        "{kind: mean_operator, noise: [laplace, gaussian, published_laplace, randomised_response, 'off']}",
        "{kind: mean_operator, noise: laplace, trust: secure}",
        "{kind: error_marginals, noise: [pure, 'off']}",
        "{kind: soft_vote, noise: [pure, 'off']}",
        "{kind: pooled}",
        "{kind: constant}",
    ]
    code, found = audited(TWO_CLASSES, entries, 10_000)
    assert code == 0
    assert exposed(found) == {"mean_operator-off", "error_marginals-off", "soft_vote-off", "pooled", "constant"}
    for name in ("mean_operator-laplace", "mean_operator-secure-laplace", "error_marginals-pure"):
        assert (found[name]["epsilon"], found[name]["delta"]) == (1.0, 0.0)
        assert found[name]["verdict"] == "stands"
        assert found[name]["half_the_noise_caught"]
    assert (found["soft_vote"]["claim_stands"], found["soft_vote"]["runs"]) == (True, 10_000)
    honest = found["mean_operator-published_laplace"]  # of 3 features, the constant one included
    assert honest["epsilon"] == pytest.approx(3**0.5, rel=1e-6)
    assert 1.0 < honest["lower_bound"] <= honest["epsilon"]
    gaussian = found["mean_operator-gaussian"]
    assert (gaussian["delta"], gaussian["verdict"]) == (1e-6, "stands")


@pytest.mark.parametrize(
    ("head", "protocol", "world"),
    [
        (RATIOS_AUDIT_SCENARIO, "class_ratio, noise: [pure, 'off']", "one party, 10 classes, one row or label changes"),
        (
            REGRESSIONS,
            "private_labels, noise: [one_bit, 'off']",
            "one party, 2 features, one label moves from one end of its declared range to the other",
        ),
        (TWO_CLASSES, "mean_operator, noise: [laplace, 'off']", "own: one party, one row or label changes."),
    ],
    ids=["class ratios", "regression", "two classes"],
)
def test_the_table_says_on_what_world(audited, monkeypatch, head, protocol, world):
    monkeypatch.setenv("COLUMNS", "300")
    _, text = audited(head, [f"{{kind: {protocol}}}"], 500, as_json=False)
    assert re.search(r"epsilon.*1.*0\.1.*1.*30", text)
    assert world in text
    assert "NON-PRIVATE" in text


def test_the_table_says_on_what_worlds_and_what_is_promised_instead(audited, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    entries = ["{kind: mean_operator, noise: published_laplace}", "{kind: error_marginals}", "{kind: soft_vote}"]
    _, text = audited(TWO_CLASSES, entries, 500, as_json=False)
    assert re.search(r"mean_operator.*error_marginals", text)
    assert "one party changes all it sends (soft_vote)" in text
    assert " of 1.73 │" in text
    _, text = audited(TWO_CLASSES, ["{kind: mean_operator, trust: secure}"], 500, as_json=False)
    assert "3 of 6 parties, whose answers are seen in one sum only, one row or label changes." in text


@pytest.mark.parametrize(
    ("head", "protocols", "match"),
    [
        (VOTES, ["{kind: soft_vote, noise: 'off'}", "{kind: pooled}"], None),
        (RATIOS_AUDIT_SCENARIO, ["{kind: class_ratio, noise: ['off', published_dirichlet]}"], None),
        (REGRESSIONS, [SMALL], None),
        (RATIOS_AUDIT_SCENARIO, ["{kind: class_ratio, noise: dirichlet_shifted, pseudo_count: 2}"], "pseudo_count"),
    ],
    ids=["votes", "class ratios", "too small a sigma", "noise that cannot be made"],
)
def test_a_scenario_without_a_guarantee_cannot_be_audited(audited, head, protocols, match):
    refused(match, audited, head, protocols, 8000)


@pytest.fixture
def asked(monkeypatch):
    """What variants are to be audited with, by name; and the bounds that are then found, by name."""
    bounds, arguments = {}, {}

    def fake(variant, epsilon, public, runs=None):
        arguments[variant.name] = (epsilon, public, runs)
        result = found(bounds.get(variant.name, 0.0), epsilon)
        return auditor.VariantAudit(variant.name, "a small world", result, result)

    monkeypatch.setattr("scenarios.audits.auditor.audit_variant", fake)
    return arguments, bounds


@pytest.fixture
def scenario(tmp_path, asked):
    """A scenario of several epsilons, the bounds that its audits are to find, and what they were asked."""
    path = tmp_path / "s.yaml"
    path.write_text(
        "baselines: false\ndata: {source: digits}\nparties: {count: 9}\nprivacy: {epsilon: [0.1, 3, 1.2, 30]}\n"
        "protocols: [{kind: soft_vote, perturb: output, sensitivity: published, regularisation: [0.0001, 1.0e-6]}]\n"
    )
    arguments, bounds = asked
    return str(path), bounds, arguments


def test_it_says_what_was_audited_and_what_not_of_several_epsilons_and_of_one(scenario, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    path, _, arguments = scenario
    assert auditor.audit_scenario(path, as_json=False, runs=1234) == 5  # no power refutes nothing, and shows nothing
    assert {(epsilon, runs) for epsilon, _, runs in arguments.values()} == {(1.2, 1234)}
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    text = " ".join(out.split())
    assert re.search(r"epsilon.*1\.2.*0\.1.*3.*1\.2.*30", text)
    assert "Other epsilons and the scenario's own data are not audited" in text
    assert text.count("stands, no power here") == 2
    assert "No power: half of the noise could be missing, and these runs would not show it." in text
    both = "soft_vote-output-published-regularisation=0.0001, soft_vote-output-published-regularisation=1e-06"
    assert re.search(rf"{both}.*3,000", text)
    for word in ("soft_vote-output- │", "published- │", "regularisation=0.0001 │", "regularisation=1e-06 │"):
        assert word in text
    monkeypatch.setenv("COLUMNS", "200")
    Path(path).write_text(Path(path).read_text().replace("[0.1, 3, 1.2, 30]", "3"))
    auditor.audit_scenario(path, as_json=False)
    out = capsys.readouterr().out
    assert "at epsilon 3, end to end" in out
    assert "The scenario's own data are not audited" in " ".join(out.split())


def test_a_refuted_claim_comes_before_an_audit_without_power(scenario, audited, capsys):
    path, bounds, _ = scenario
    bounds["soft_vote-output-published-regularisation=1e-06"] = 1.3
    assert auditor.audit_scenario(path, as_json=True) == 1
    assert [record["verdict"] for record in json.loads(capsys.readouterr().out)] == ["stands, no power here", "REFUTED"]
    for head, kind in (
        (RATIOS_AUDIT_SCENARIO, "class_ratio"),
        (REGRESSIONS, "label_sums"),
        (TWO_CLASSES, "mean_operator"),
    ):
        bounds[kind] = 1.2  # of noise that parties make, too
        code, records = audited(head, [f"{{kind: {kind}}}"], None)
        assert (code, records[kind]["verdict"]) == (1, "REFUTED")


def test_audits_that_refute_half_of_the_noise_exit_with_0(scenario, capsys, monkeypatch):
    """Though their own bounds are far below the claim: another pair of neighbours may be worse."""

    def strong(variant, epsilon, public, runs=None):
        return auditor.VariantAudit(variant.name, "a small world", found(0.1, epsilon), found(2 * epsilon, epsilon))

    monkeypatch.setattr("scenarios.audits.auditor.audit_variant", strong)
    assert auditor.audit_scenario(scenario[0], as_json=True) == 0
    found_of = json.loads(capsys.readouterr().out)
    assert {(record["verdict"], record["why_no_power"]) for record in found_of} == {("stands", None)}
    auditor.audit_scenario(scenario[0], as_json=False)
    assert "No power" not in capsys.readouterr().out


def test_the_table_says_which_point_was_tested(audited, monkeypatch):
    pointed = replace(found(0.8), delta=1e-6, point=CurvePoint(0.25, 0.5, 0.42))
    monkeypatch.setattr(
        "scenarios.audits.auditor.audit_variant",
        lambda variant, *rest: auditor.VariantAudit(variant.name, "a small world", pointed, found(1.5)),
    )
    for columns in ("200", "80"):
        monkeypatch.setenv("COLUMNS", columns)
        _, text = audited(VOTES, ["{kind: soft_vote, noise: [gaussian, 'off']}", "{kind: pooled}"], 2000, as_json=False)
        assert "0.42 of 0.5" in text
        assert "at 0.25" in text
        assert "Tested: the point of a privacy curve that half of the runs choose" in text
        assert text.count("NON-PRIVATE") == 2


@pytest.fixture
def public(asked, tmp_path, capsys):
    """The public numbers that the only variant of a scenario is audited with."""

    def of(**changes):
        document = {
            "data": {"source": "digits"}, "parties": {"count": 9}, "privacy": {"epsilon": 1},
            "protocols": [{"kind": "class_ratio"}], "baselines": False, **changes,
        }  # fmt: skip
        [only] = variants(resolve(document))
        path = tmp_path / "public.json"
        path.write_text(json.dumps(document))
        auditor.audit_scenario(str(path), as_json=True)
        return asked[0][only.name][1]

    return of


CLASSIFIED = {"source": "absent.csv", "label": "l", "classes": ["a", "b", "c"]}
REGRESSION_SETTINGS = {"protocols": [{"kind": "noisy_weighted_llp", "size": 3, "bags": 7}], "parties": {"count": 2}}
RANGED = {"source": "absent.csv", "label": "l", "range": [0, 3]}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, PublicNumbers(1e-6, classes=10)),
        ({"privacy": {"epsilon": 1, "delta": 0.01}}, PublicNumbers(0.01, classes=10)),
        ({"data": CLASSIFIED}, PublicNumbers(1e-6, classes=3)),  # without reading anything
        ({"data": {"source": "diabetes"}, **REGRESSION_SETTINGS}, PublicNumbers(1e-6, label_range=(25.0, 346.0))),
        ({"data": RANGED, **REGRESSION_SETTINGS}, PublicNumbers(1e-6, label_range=(0.0, 3.0))),
    ],
    ids=["digits", "delta", "declared classes", "diabetes", "declared range"],
)
def test_the_public_numbers_are_the_scenarios_own(public, changes, expected):
    assert public(**changes) == expected


def test_persons_are_the_scenarios_own_and_absent_data_are_refused(public, tmp_path, monkeypatch):
    monkeypatch.delenv("FEDERATION_DATA", raising=False)
    path = tmp_path / "own.csv"
    path.write_text("x,who,label\n" + "".join(f"{n},{n // 2},{n % 4}\n" for n in range(40)))
    data = {"source": str(path), "label": "label", "person": "who", "rows_per_person": [2, 3]}
    assert public(data=data) == PublicNumbers(1e-6, classes=4, rows_per_person=2)
    refused("absent", public, data={"source": "absent.csv", "label": "l"})


PUBLIC = PublicNumbers(0.01, classes=3, rows_per_person=2, label_range=(-1.0, 2.0))
KINDS = (
    "class_ratio", "soft_vote", "majority_vote", "parameter_average", "label_sums", "private_labels",
    "noisy_weighted_llp", "weighted_lba", "mean_operator", "error_marginals",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_world_is_that_of_the_worst_case_and_its_session_asks(kind):
    variant, worst = variant_of(kind, {}), worst_of(kind, {}, PUBLIC)
    made = auditor.plan(worst, variant, 0.7, 0.02, there=False)
    assert (made.releases.epsilons, made.releases.budget) == ((0.7,), None)
    assert (made.public.delta, made.public.draws) == (0.02, 1)
    assert made == made.changed(**worst.world)
    terms = {"parties": made.terms.parties, "classes": made.task.classes, "rows": made.public.rows}
    assert {name: value for name, value in worst.world.items() if name in terms}.items() <= terms.items()
    [only] = made.variants
    assert (only.name, only.kind, only.options) == (variant.name, kind, variant.options)
    np.testing.assert_array_equal(made.task.table.call().rows, worst.public)
    assert made.run.simulation
    assert made.run.noise_seed is not None  # so that an audit finds the same each time
    assert list(auditor.begun(worst, variant, 1.0, 0.01).questions())


def test_a_public_row_that_is_protected_is_another_one_on_the_other_side():
    options = {"perturb": "output", "protect": "party_and_auxiliary_row"}
    variant, worst = variant_of("soft_vote", options), worst_of("soft_vote", options, PUBLIC)
    here, there = (auditor.plan(worst, variant, 1.0, 0.01, side).task.table.call().rows for side in (False, True))
    np.testing.assert_array_equal(here, worst.public)
    np.testing.assert_array_equal(there, worst.public_there)
    assert (here != there).any()


def test_options_that_only_make_a_world_larger_are_small_and_those_that_clash_are_refused():
    variant = variant_of("mean_operator", {"expansion": "fourier", "dimensions": 300, "noise": "laplace"})
    worst = worst_of("mean_operator", variant.options, PUBLIC)
    session = auditor.begun(worst, variant, 1.0, 0.01)
    assert session.feature_map.dimension == 2
    assert variant.options["dimensions"] == 300
    assert auditor.private_question(session).noise.kind == "laplace"
    variant = variant_of("class_ratio", {})
    refused(r"label_share.*0.*1", auditor.chosen_of, type(variant)("v", "class_ratio", {"label_share": 2.0}, {}, False))


def test_parties_hold_the_rows_of_a_worst_case_by_turns_and_worlds_beside_each_other_do_not_mix():
    held = [Rows(np.full((2, 1), value), np.array([0, 1]), np.array([0, 1]), np.array([5, 6])) for value in (1.0, 2.0)]
    with auditor.cohort(held, 5) as node:
        assert (list(node.parties), node.seed is not None) == (list(range(5)), True)
        for party in node.parties:
            found = node.provider.holdings(party)
            assert found.party == party
            for name in ("rows", "labels", "bags", "persons"):
                np.testing.assert_array_equal(getattr(found, name), getattr(held[party % 2], name))
        assert node.provider.evaluation() is None
    before = dict(auditor._held)
    one, other = ([Rows(np.full((1, 1), value), np.zeros(1))] for value in (1.0, 2.0))
    with auditor.cohort(one, 1) as first, auditor.cohort(other, 1) as second:
        assert (first.provider.holdings(0).rows[0, 0], second.provider.holdings(0).rows[0, 0]) == (1.0, 2.0)
        with pytest.raises(ZeroDivisionError), auditor.cohort(one, 1):
            raise ZeroDivisionError
    assert auditor._held == before


def test_columns_of_a_public_table_are_called_by_their_numbers():
    table = auditor.public_table([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert table.rows.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert (table.columns, table.text_columns) == (("0", "1", "2"), ())
