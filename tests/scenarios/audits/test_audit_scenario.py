"""`federation audit`: what of a scenario it audits, on what worlds, and that it tells what it cannot."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.mechanisms.audits import AuditResult, CurvePoint
from scenarios.audits.auditor import VariantAudit, audit_scenario
from scenarios.settings.schema import resolve
from scenarios.settings.sweep import variants

PRIVACY = "privacy: {epsilon: [0.1, 1, 30], delta: 1.0e-6}\n"
VOTES = "baselines: false\ndata: {source: digits}\nparties: {count: 9}\nprivacy: {epsilon: 1}\n"
RATIOS = f"baselines: false\ndata: {{source: digits}}\nparties: {{count: 9}}\n{PRIVACY}"
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
        code = audit_scenario(str(path), as_json, runs)
        out = capsys.readouterr().out
        if not as_json:
            return code, " ".join(out.split())
        records = json.loads(out)
        assert len({tuple(record) for record in records}) == 1  # all have the same keys
        return code, {record["variant"]: record for record in records}

    return of


def exposed(found):
    return {name for name, record in found.items() if record["verdict"] == "NON-PRIVATE"}


def test_private_variants_of_class_ratios_are_audited_and_all_others_listed(audited):
    entries = [
        "{kind: class_ratio}",
        "{kind: class_ratio, noise: [gaussian, published_dirichlet, 'off']}",
        ROW,
        "{kind: pooled}",
    ]
    code, found = audited(RATIOS, entries, 20_000)
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


def test_a_delta_that_can_be_tested_gives_power(audited):
    head = RATIOS.replace("1.0e-6", "0.05")
    code, found = audited(head, ["{kind: class_ratio, noise: [gaussian, laplace]}", ROW], 20_000)
    assert code == 0
    assert {record["verdict"] for record in found.values()} == {"stands"}
    assert all(record["half_the_noise_caught"] for record in found.values())


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
        (RATIOS, "class_ratio, noise: [pure, 'off']", "one party, 10 classes, one row or label changes"),
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
    _, text = audited(head, [f"{{kind: {protocol}}}"], 2000, as_json=False)
    assert "Lower bounds at epsilon 1 alone, of 0.1, 1, 30" in text
    assert world in text
    assert "NON-PRIVATE" in text


def test_the_table_says_on_what_worlds_and_what_is_promised_instead(audited, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    entries = ["{kind: mean_operator, noise: published_laplace}", "{kind: error_marginals}", "{kind: soft_vote}"]
    _, text = audited(TWO_CLASSES, entries, 2000, as_json=False)
    assert "Lower bounds at epsilon 1 alone, of 0.1, 1, 30" in text
    assert "one party, one row or label changes (mean_operator, error_marginals)" in text
    assert "one party changes all it sends (soft_vote)" in text
    assert " of 1.73 │" in text
    _, text = audited(TWO_CLASSES, ["{kind: mean_operator, trust: secure}"], 2000, as_json=False)
    assert "3 of 6 parties, whose answers are seen in one sum only, one row or label changes." in text


@pytest.mark.parametrize(
    ("head", "protocols"),
    [
        (VOTES, ["{kind: soft_vote, noise: 'off'}", "{kind: pooled}"]),
        (RATIOS, ["{kind: class_ratio, noise: ['off', published_dirichlet]}"]),
    ],
    ids=["votes", "class ratios"],
)
def test_a_scenario_without_a_guarantee_cannot_be_audited(audited, head, protocols):
    with pytest.raises(InputError, match="nothing to audit"):
        audited(head, protocols, None)


def test_noise_that_cannot_be_made_is_named(audited):
    with pytest.raises(InputError, match="pseudo_count must be at least"):
        audited(RATIOS, ["{kind: class_ratio, noise: dirichlet_shifted, pseudo_count: 2}"], 20_000)


def test_noise_that_promises_nothing_cannot_be_audited(audited):
    with pytest.raises(InputError, match="too little noise"):
        audited(REGRESSIONS, [SMALL], 8000)


def found(bound, epsilon=1.0):
    return AuditResult(lower_bound=bound, claimed=epsilon, delta=0.0, confidence=0.999, runs=1000, event="")


@pytest.fixture
def asked(monkeypatch):
    """What variants are to be audited with, by name; and the bounds that are then found, by name."""
    bounds, arguments = {}, {}

    def fake(variant, epsilon, public, runs=None):
        arguments[variant.name] = (epsilon, public, runs)
        result = found(bounds.get(variant.name, 0.0), epsilon)
        return VariantAudit(variant.name, "a small world", result, result)

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


def test_it_says_what_was_audited_and_what_not(scenario, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    path, _, arguments = scenario
    assert audit_scenario(path, as_json=False, runs=1234) == 5  # no power refutes nothing, and shows nothing
    assert {(epsilon, runs) for epsilon, _, runs in arguments.values()} == {(1.2, 1234)}
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    text = " ".join(out.split())
    assert "Lower bounds at epsilon 1.2 alone, of 0.1, 3, 1.2, 30" in text
    assert "Other epsilons and the scenario's own data are not audited" in text
    assert text.count("stands, no power here") == 2
    assert "No power: half of the noise could be missing, and these runs would not show it." in text
    both = "soft_vote-output-published-regularisation=0.0001, soft_vote-output-published-regularisation=1e-06"
    assert f"No power for {both}: these 1,000 runs are too few" in text
    for word in ("soft_vote-output- │", "published- │", "regularisation=0.0001 │", "regularisation=1e-06 │"):
        assert word in text


def test_a_refuted_claim_comes_before_an_audit_without_power(scenario, capsys):
    path, bounds, _ = scenario
    bounds["soft_vote-output-published-regularisation=1e-06"] = 1.3
    assert audit_scenario(path, as_json=True) == 1
    assert [record["verdict"] for record in json.loads(capsys.readouterr().out)] == ["stands, no power here", "REFUTED"]


def test_audits_that_refute_half_of_the_noise_exit_with_0(scenario, capsys, monkeypatch):
    """Though their own bounds are far below the claim: another pair of neighbours may be worse."""

    def strong(variant, epsilon, public, runs=None):
        return VariantAudit(variant.name, "a small world", found(0.1, epsilon), found(2 * epsilon, epsilon))

    monkeypatch.setattr("scenarios.audits.auditor.audit_variant", strong)
    assert audit_scenario(scenario[0], as_json=True) == 0
    found_of = json.loads(capsys.readouterr().out)
    assert {(record["verdict"], record["why_no_power"]) for record in found_of} == {("stands", None)}
    audit_scenario(scenario[0], as_json=False)
    assert "No power" not in capsys.readouterr().out


def test_the_table_says_which_point_was_tested(audited, monkeypatch):
    pointed = replace(found(0.8), delta=1e-6, point=CurvePoint(0.25, 0.5, 0.42))
    monkeypatch.setattr(
        "scenarios.audits.auditor.audit_variant",
        lambda variant, *rest: VariantAudit(variant.name, "a small world", pointed, found(1.5)),
    )
    for columns in ("200", "80"):
        monkeypatch.setenv("COLUMNS", columns)
        _, text = audited(VOTES, ["{kind: soft_vote, noise: [gaussian, 'off']}", "{kind: pooled}"], 2000, as_json=False)
        assert "0.42 of 0.5" in text
        assert "at 0.25" in text
        assert "Tested: the point of a privacy curve that half of the runs choose" in text
        assert text.count("NON-PRIVATE") == 2


@pytest.mark.parametrize(
    ("head", "kind"),
    [(RATIOS, "class_ratio"), (REGRESSIONS, "label_sums"), (TWO_CLASSES, "mean_operator")],
    ids=["class ratios", "regression", "two classes"],
)
def test_a_refuted_claim_of_noise_that_parties_make_fails_too(audited, asked, head, kind):
    asked[1][kind] = 1.2
    code, records = audited(head, [f"{{kind: {kind}}}"], None)
    assert code == 1
    assert records[kind]["verdict"] == "REFUTED"


def test_the_only_epsilon_of_a_scenario_is_not_compared_with_others(scenario, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = Path(scenario[0]).read_text().replace("[0.1, 3, 1.2, 30]", "3")
    Path(scenario[0]).write_text(text)
    audit_scenario(scenario[0], as_json=False)
    out = capsys.readouterr().out
    assert "at epsilon 3, end to end" in out
    assert "The scenario's own data are not audited" in " ".join(out.split())


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
        audit_scenario(str(path), as_json=True)
        return asked[0][only.name][1]

    return of


def test_classes_and_persons_are_the_scenarios_own(public, tmp_path):
    assert public() == PublicNumbers(1e-6, classes=10)
    declared = public(data={"source": "absent.csv", "label": "l", "classes": ["a", "b", "c"]})
    assert declared.classes == 3  # without reading anything
    path = tmp_path / "own.csv"
    path.write_text("x,who,label\n" + "".join(f"{n},{n // 2},{n % 4}\n" for n in range(40)))
    data = {"source": str(path), "label": "label", "person": "who", "rows_per_person": [2, 3]}
    assert public(data=data) == PublicNumbers(1e-6, classes=4, rows_per_person=2)
    with pytest.raises(InputError, match="absent"):
        public(data={"source": "absent.csv", "label": "l"})


def test_the_range_of_labels_is_the_scenarios_own(public):
    regression = {"protocols": [{"kind": "noisy_weighted_llp", "size": 3, "bags": 7}], "parties": {"count": 2}}
    assert public(data={"source": "diabetes"}, **regression) == PublicNumbers(1e-6, label_range=(25.0, 346.0))
    own = {"source": "absent.csv", "label": "l", "range": [0, 3]}
    assert public(data=own, **regression).label_range == (0, 3)  # without reading anything


def test_the_scenarios_own_delta_is_audited(public):
    assert public(privacy={"epsilon": 1, "delta": 0.01}).delta == 0.01
