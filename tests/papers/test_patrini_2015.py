"""Patrini, Nielsen and Nock 2015: the mean operator under label privacy, beside what the paper leaves open."""

import pytest
from support.measured import means, needed_data

INFINITE = float("inf")
CLASSES = {"breast_cancer": {}, "ctg": {"positive": ["normal"]}, "digits": {"positive": ["1", "3", "5", "7", "9"]}}
# Accuracies at epsilon .1, .3 and 1 of a reference implementation with the best of four regularisations in hindsight;
# the default here is chosen by public numbers.
FIGURES = {
    ("breast_cancer", "laplace"): (0.842, 0.925, 0.943),
    ("breast_cancer", "pure"): (0.798, 0.922, 0.949),
    ("breast_cancer", "gaussian"): (0.903, 0.941, 0.954),
    ("breast_cancer", "randomised_response"): (0.734, 0.927, 0.953),
    ("ctg", "laplace"): (0.752, 0.826, 0.865),
    ("ctg", "pure"): (0.759, 0.836, 0.870),
    ("ctg", "gaussian"): (0.795, 0.845, 0.875),
    ("ctg", "randomised_response"): (0.648, 0.785, 0.860),
    ("digits", "laplace"): (0.623, 0.773, 0.840),
    ("digits", "pure"): (0.673, 0.793, 0.844),
    ("digits", "gaussian"): (0.776, 0.834, 0.874),
    ("digits", "randomised_response"): (0.596, 0.795, 0.872),
}


def accuracies(scenario, out, overrides=(), data_dir=None):
    return means("accuracy", scenario, out, overrides, data_dir)


def test_noise_in_l2_costs_less_than_noise_in_l1_at_equal_privacy(tmp_path):
    noises = "[gaussian, laplace, published_laplace, off]"
    as_published = f"protocols=[{{kind: mean_operator, noise: {noises}, denoise: false}}]"
    changes = ["trials.splits=4", "privacy.epsilon=[0.3]", as_published]
    found = accuracies("breast-cancer-mean-operator", tmp_path / "out", changes)
    law = "mean_operator-{}-denoise=false"
    gaussian, laplace = (found[law.format(noise), 0.3] for noise in ("gaussian", "laplace"))
    assert laplace + 0.02 < gaussian < found[law.format("off"), INFINITE]
    [published] = [epsilon for name, epsilon in found if name == law.format("published_laplace")]
    assert published == pytest.approx(0.3 * 31**0.5, rel=1e-6)  # what it really gives


@pytest.mark.reproduction
@pytest.mark.parametrize("source", CLASSES)
def test_accuracies_at_three_epsilons(tmp_path, source):
    noises = ["laplace", "pure", "gaussian", "randomised_response"]
    scenario = {
        "data": {"source": source, "auxiliary": 0.1, "test": 0.25, **CLASSES[source]},
        "parties": {"count": 1},
        "protocols": [{"kind": "mean_operator", "noise": noises, "denoise": False}],  # as in the paper
        "privacy": {"epsilon": [0.1, 0.3, 1], "delta": 1e-6},
        "trials": {"splits": 10, "noise": 5},
    }
    found = accuracies(scenario, tmp_path / "out", data_dir=needed_data() if source == "ctg" else None)
    for noise in noises:
        for epsilon, figure in zip((0.1, 0.3, 1), FIGURES[source, noise], strict=True):
            slack = {0.1: 0.15, 0.3: 0.05, 1: 0.03}[epsilon]  # single releases spread by .15 at epsilon .1
            assert found[f"mean_operator-{noise}-denoise=false", epsilon] > figure - slack, (noise, epsilon)


@pytest.mark.reproduction
def test_shares_of_one_noise_cost_nothing_for_a_thousand_parties(tmp_path):
    one = ["parties.count=1", "protocols=[{kind: mean_operator, noise: [sums, pure]}]"]
    trusted = ["parties.count=1024", "parties.quorum=1", "parties.colluding=0"]
    trusted.append("protocols=[{kind: mean_operator, noise: [sums, pure], trust: [none, secure]}]")
    run_one, many = (
        accuracies("adult-mean-operator", tmp_path / name, ["privacy.epsilon=[1]", *options], needed_data())
        for name, options in (("one", one), ("many", trusted))
    )
    for noise in ("sums", "pure"):
        alone, shared = run_one[f"mean_operator-{noise}", 1], many[f"mean_operator-secure-{noise}", 1]
        assert shared > alone - 0.005
        assert many[f"mean_operator-none-{noise}", 1] < alone - 0.02  # every party's own noise


@pytest.mark.reproduction
def test_a_thousand_parties_that_trust_nobody_learn_nearly_as_one(tmp_path):
    options = ["privacy.epsilon=[1]", "protocols=[{kind: mean_operator}]"]
    found = [
        accuracies("adult-mean-operator", tmp_path / str(count), [*options, f"parties.count={count}"], needed_data())
        for count in (1, 1024)
    ]
    assert found[1]["mean_operator", 1] > found[0]["mean_operator", 1] - 0.01
