import numpy as np
import pytest

from aggregator.collectors.vectors import parameter_average, radius_of_any_rows
from aggregator.contract.registry import protocol
from aggregator.protocols.parameter_average import ParameterAverage
from aggregator.trial.feature_fitting import fit
from aggregator.trial.public_rows import PublicRows
from federation.contract.errors import InputError
from federation.contract.guarantee import Check
from federation.contract.query import Submission
from federation.mechanisms.accounting.sensitivity import radius
from federation.numerics.rows import contrasts
from federation.queries.votes import Training

LAM, PARTIES = 1e-2, 9
VARIANTS = {
    "unit": ParameterAverage(),
    "clipped": ParameterAverage(average="clipped"),
    "narrow": ParameterAverage(average="clipped", clip=0.5),
    "diameter": ParameterAverage(average="plain"),
    "tight": ParameterAverage(average="plain", sensitivity="tight"),
    "published": ParameterAverage(average="plain", sensitivity="published"),
}


def world(classes=3, width=4, classifier=None, stages=("unit_norm",)):
    rows = np.random.default_rng(1).normal(size=(30, width))
    feature_map = fit(stages, rows)
    classifier = classifier or {"name": "logistic", "parameters": {"regularisation": LAM}}
    return PublicRows(feature_map, feature_map.transform(rows)), Training(feature_map, classes, classifier, 0)


def prepared(chosen, sent, classes=3, parties=PARTIES):
    """What is perturbed after the first len(sent) parties sent these vectors."""
    public, training = world(classes, sent.shape[-1])
    question = chosen.question(public, training)
    collector = chosen.collector(public, question, parties)
    collector.add(Submission("parameters", np.arange(len(sent)), {"parameters": sent}))
    return chosen.prepare(collector)


def answers(seed=0, classes=3, parties=PARTIES, width=4, scale=1.0):
    return scale * np.random.default_rng(seed).normal(size=(parties, classes - 1, width))


@pytest.mark.parametrize(("options", "words"), [
    ({"clip": 1.0}, r"average.*clipped"), ({"average": "clipped", "clip": 0.0}, "positive"),
    ({"average": "clipped", "clip": float("inf")}, "positive"), ({"sensitivity": "published"}, r"average.*plain"),
    ({"average": "clipped", "sensitivity": "tight"}, r"average.*plain"),
])  # fmt: skip
def test_options_that_mean_nothing_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        ParameterAverage(**options)


@pytest.mark.parametrize("classifier", [
    {"name": "GaussianNB", "parameters": {}}, {"name": "logistic", "parameters": {}},
    {"name": "mixture", "parameters": {"members": [{"name": "logistic"}], "weights": [1.0]}},
])  # fmt: skip
def test_other_classifiers_are_refused_before_anything_is_asked(classifier):
    assert protocol("parameter_average") is ParameterAverage
    with pytest.raises(InputError):
        ParameterAverage().question(*world(classifier=classifier))


@pytest.mark.parametrize("stages", [(), ("scale",), ("unit_norm", "constant")])
def test_the_plain_average_refuses_long_rows_and_the_others_do_not_need_short_ones(stages):
    for average in ("unit", "clipped"):
        ParameterAverage(average=average).question(*world(stages=stages))
    with pytest.raises(InputError, match=r"unit_norm.*max_norm"):
        ParameterAverage(average="plain").question(*world(stages=stages))


@pytest.mark.parametrize("stages", [("unit_norm",), ("constant", "max_norm")])
def test_all_averages_share_one_question(stages):
    asked = [chosen.question(*world(stages=stages)) for chosen in VARIANTS.values()]
    assert len({(one.gradient_tolerance, one.largest) for one in asked}) == 1
    assert asked[0].largest == 2 * radius_of_any_rows(LAM, 3)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_averages_are_what_they_are_called(classes):
    sent = answers(classes=classes, parties=5, scale=3.0)
    norms = np.linalg.norm(sent, axis=(1, 2), keepdims=True)
    clip = 0.2 * radius_of_any_rows(LAM, classes)
    ball = radius(LAM, classes)
    factors = {"unit": 1 / norms, "narrow": 0.5 / norms, "clipped": np.minimum(1, clip / norms)}
    for name, chosen in VARIANTS.items():
        expected = (sent * factors.get(name, np.minimum(1, ball / norms))).sum(axis=0) / PARTIES
        value = prepared(chosen, sent, classes).value
        if name == "published" and classes > 2:
            expected = contrasts(classes) @ expected
        np.testing.assert_allclose(value, expected.ravel(), atol=1e-5)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("name", VARIANTS)
def test_weights_decide_like_the_mean_of_the_parties_weights(name, classes):
    sent = answers(classes=classes)
    found = prepared(VARIANTS[name], sent, classes)
    weights = found.decode(np.stack([found.value, 2 * found.value]), None)
    assert weights.shape == (2, classes, 4)
    np.testing.assert_allclose(weights.sum(axis=1), 0, atol=1e-12)
    rows = np.random.default_rng(2).normal(size=(200, 4))
    if classes == 2:
        expected = (rows @ found.value > 0).astype(int)
    else:
        whole = name == "published"
        full = found.value if whole else contrasts(classes) @ found.value.reshape(classes - 1, 4)
        expected = (rows @ full.reshape(classes, 4).T).argmax(axis=1)
    for one in weights:
        np.testing.assert_array_equal((rows @ one.T).argmax(axis=1), expected)


@pytest.mark.parametrize("classes", [2, 3])
def test_sensitivities_are_the_public_formulas(classes):
    found = {name: prepared(chosen, answers(classes=classes), classes).sensitivity for name, chosen in VARIANTS.items()}
    exact = {"unit": 2 / PARTIES, "narrow": 1 / PARTIES, "clipped": 0.4 * radius_of_any_rows(LAM, classes) / PARTIES}
    for form in ("diameter", "tight", "published"):
        exact[form] = parameter_average(form, regularisation=LAM, parties=PARTIES, classes=classes)
    for name, expected in exact.items():
        assert expected < found[name] <= expected * (1 + 1e-5), name
    assert found["published"] > found["tight"] > found["diameter"]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", VARIANTS)
def test_hostile_parameters_move_the_mean_by_at_most_the_sensitivity(name, classes):
    chosen = VARIANTS[name]
    largest = chosen.question(*world(classes)).largest
    honest = answers(classes=classes)
    direction = answers(7, classes, 1)[0]
    direction /= np.linalg.norm(direction)
    attacks = [direction * length for length in (-1.0, 1.0, -largest, largest, 1e-300)]
    attacks += [np.full_like(direction, value) for value in (largest, -largest, np.nan, np.inf, 1e300, 0.0)]
    values = []
    for attack in attacks:
        sent = honest.copy()
        sent[0] = attack
        values.append(prepared(chosen, sent, classes).value)
    furthest = max(np.linalg.norm(a - b) for a in values for b in values)
    sensitivity = prepared(chosen, honest, classes).sensitivity
    assert furthest <= sensitivity
    if name not in ("tight", "published"):
        assert furthest == pytest.approx(sensitivity, rel=1e-5)


@pytest.mark.parametrize("name", VARIANTS)
def test_every_premise_about_what_parties_send_is_enforced(name):
    found = prepared(VARIANTS[name], answers())
    texts = [premise.text for premise in found.assumptions if premise.check is Check.ENFORCED]
    assert any("nothing that a party sends" in text for text in texts)
    assert not any("minimiser" in p.text and p.check is Check.DECLARED for p in found.assumptions)
    assert found.checks
