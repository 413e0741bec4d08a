"""Settings without effect are refused where they stand; where they have one, they are not."""

import pytest

from federation.contract.errors import InputError
from scenarios.settings.guarantees import to_yaml
from scenarios.settings.rules import idle
from scenarios.settings.schema import resolve

SETTINGS = {
    "data.targets": ["data.targets={}"],
    "data.rows_per_person": ["data.person=who", "data.rows_per_person=[1, 2]"],
    "parties.bags": ["parties.bags=[1, 2]"],
}


def document(source, *protocols):
    return {
        "data": {"source": source},
        "parties": {"count": 2},
        "protocols": [{"kind": entry} if isinstance(entry, str) else entry for entry in protocols],
        "privacy": {"epsilon": 1},
        "baselines": False,
    }


@pytest.mark.parametrize(
    ("source", "protocols", "ratios"),
    [
        ("digits", ["class_ratio"], True),
        ("digits", ["pooled", "class_ratio"], True),
        ("digits", ["soft_vote"], False),
        ("digits", ["pooled"], False),
        ("breast_cancer", ["mean_operator", "constant"], False),
        ("breast_cancer", ["error_marginals", "mean_operator", "soft_vote"], False),
        ("diabetes", ["label_sums", "pooled"], False),
        ("diabetes", [{"kind": "weighted_lba", "size": 3, "bags": 7}], False),
    ],
)
def test_what_is_for_class_ratios_is_refused_elsewhere(source, protocols, ratios):
    found = set()
    for key, settings in SETTINGS.items():
        try:
            resolve(document(source, *protocols), settings)
        except InputError as error:
            found |= {key for line in str(error).splitlines() if f" {key}: " in line}
    assert found == (set() if ratios else SETTINGS.keys())


@pytest.mark.parametrize("trust", ["aggregator", "secure", "none"])
def test_servers_are_refused_where_nothing_is_added_up_for_them(trust):
    asked = {**document("breast_cancer", "mean_operator"), "trust": trust}
    assert resolve(asked).servers == "one"
    if trust == "secure":
        assert resolve({**asked, "servers": "two"}).servers == "two"
        return
    with pytest.raises(InputError, match="servers: two is for secure sums, and no protocol has any"):
        resolve({**asked, "servers": "two"})


def test_it_is_refused_at_its_line(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(
        "data:\n  source: breast_cancer\n  targets: {rows: 10}\nparties:\n  count: 4\n  bags: {by: ward}\n"
        "protocols: [{kind: error_marginals}, {kind: mean_operator}]\nprivacy: {epsilon: 1}\n"
    )
    with pytest.raises(InputError) as refused:
        resolve(path)
    assert str(refused.value).splitlines() == [
        f"{path}:3: data.targets: are sets to estimate class ratios of, which error_marginals does not do; remove it",
        f"{path}:6: parties.bags: have label counts of their own, which error_marginals does not ask for; remove it",
    ]


def test_the_defaults_may_be_written_out():
    given = document("breast_cancer", "mean_operator")
    assert resolve(given, ["data.targets=null", "data.rows_per_person=1", "parties.bags=1"]) == resolve(given)


CLASSIFIER, DELTA = "parties.classifier", "privacy.delta"


@pytest.mark.parametrize(
    ("source", "protocols", "without_effect"),
    [
        ("digits", [{"kind": "soft_vote", "noise": ["pure", "gaussian"]}], set()),
        ("digits", ["soft_vote", {"kind": "majority_vote", "noise": "off"}], {DELTA}),
        ("digits", ["class_ratio", "pooled"], set()),
        ("digits", ["class_ratio"], {CLASSIFIER}),
        ("digits", [{"kind": "class_ratio", "estimator": "mmd", "noise": "published_dirichlet"}], {CLASSIFIER}),
        ("breast_cancer", ["mean_operator", "constant"], {CLASSIFIER}),
        ("breast_cancer", [{"kind": "mean_operator", "noise": ["pure", "off"]}, "individual"], {DELTA}),
        ("breast_cancer", [{"kind": "error_marginals", "noise": "pure"}, "mean_operator"], {CLASSIFIER}),
        ("diabetes", ["label_sums", "pooled"], {CLASSIFIER}),
        ("diabetes", ["pooled"], {CLASSIFIER, DELTA, "privacy.epsilon", "trials.noise"}),
        ("digits", [{"kind": "soft_vote", "noise": "off"}], {DELTA, "privacy.epsilon", "trials.noise"}),
    ],
)
def test_what_makes_no_difference_beside_the_protocols_is_told(source, protocols, without_effect):
    scenario = resolve(document(source, *protocols), ["parties.classifier=logistic"])
    found = {".".join(path) for path, _ in idle(scenario.data, scenario.protocols, scenario.privacy)}
    assert found == {*without_effect, "servers"}
    assert to_yaml(scenario).count("# Without effect here: no ") == len(found)


def test_who_adds_up_makes_a_difference_to_secure_sums_alone():
    asked = [{"kind": "mean_operator", "trust": trust} for trust in ("none", "secure")]
    for protocols, without_effect in ((asked, False), (asked[:1], True)):
        known = resolve(document("breast_cancer", *protocols))
        told = [path for path, _ in idle(known.data, known.protocols, known.privacy)]
        assert (("servers",) in told) is without_effect


def test_it_is_told_at_its_key():
    lines = to_yaml(resolve(document("breast_cancer", "mean_operator"))).splitlines()
    told, servers = [number for number, line in enumerate(lines) if "Without effect" in line]
    assert lines[servers + 1] == "servers: one"
    assert lines[told] == "  # Without effect here: no protocol or baseline trains it."
    assert lines[told + 1].startswith("  classifier: ")
