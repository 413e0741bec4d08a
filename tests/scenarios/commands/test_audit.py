"""`federation audit` on its own, without the rest of the command line.

`federation check-claim` as a person meets it.
"""

import json
import re
from dataclasses import replace
from functools import partial

import pytest

from federation.mechanisms import audits
from federation.mechanisms.noise import gaussian


def test_audit_reports_claims_and_twins(done):
    (record,) = json.loads(done("audit", "discrete_laplace", "--runs", "50000", "--json"))
    assert record["claim_stands"]
    assert record["as_expected"]
    assert 0.5 < record["lower_bound"] <= record["epsilon"] == 1
    assert all(twin["caught"] for twin in record["broken_twins"])
    assert record["tested_epsilon"] is None
    (counts,) = json.loads(done("audit", "count_gaussian", "--runs", "50000", "--json"))
    assert (counts["delta"], counts["as_expected"]) == (1e-6, True)
    assert counts["tested_delta_bound"] <= counts["tested_delta"]


def test_audit_fails_when_a_claim_is_refuted_and_without_power_with_an_exit_code_of_its_own(typed, monkeypatch):
    """As where a twin has all of the noise: what cannot be told from it says nothing about the mechanism."""
    honest = audits.audited_mechanisms()["discrete_laplace"]
    broken = {"broken": replace(honest, sample=honest.twins[0].sample)}
    missed = {"unseen": replace(honest, twins=(replace(honest.twins[0], sample=honest.sample),))}
    for found, code, words in ((broken, 1, "REFUTED"), (missed, 5, "NO POWER"), (missed | broken, 1, "REFUTED")):
        monkeypatch.setattr(audits, "audited_mechanisms", found.copy)
        found_code, told, _ = typed("audit", "--runs", "20000")
        assert found_code == code  # a refuted claim comes first
        assert words in told


def test_audit_takes_the_names_of_the_privacy_commands(typed):
    gaussian, l2_gamma = ["discrete_gaussian_1d", "discrete_gaussian_3d"], ["l2_gamma_2d", "l2_gamma_3d"]
    families = {"gaussian": gaussian, "discrete-gaussian": gaussian, "l2-gamma": l2_gamma, "l2-gamma-3d": l2_gamma[1:]}
    for name, found in (families | {"discrete-laplace": ["discrete_laplace"]}).items():
        told = typed("audit", name, "--runs", "1000", "--json")[1]
        assert [row["mechanism"] for row in json.loads(told)] == found


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("gausian", "gaussian"), ("l2-gama", "l2_gamma"), ("har-publishd", "har-published"), ("nothing", "")],
)
def test_an_unknown_target_names_mechanisms_and_scenarios(refused, name, nearest):
    text = refused("audit", name).rstrip()
    assert f"'{name}'" in text
    mechanisms = "discrete_laplace, l2_gamma, discrete_gaussian, lattice_laplace, count_gaussian"
    assert f"mechanisms: {mechanisms}; library: " in text
    assert text.endswith(f"; did you mean '{nearest}'?") if nearest else "did you mean" not in text
    refused("audit", name * 1000)  # no file can have such a name


def test_the_target_and_runs_reach_the_audit_of_a_scenario(typed, monkeypatch):
    asked = []

    def fake(target, as_json, runs=None):
        asked.append((target, as_json, runs))
        return 1

    monkeypatch.setattr("scenarios.audits.auditor.audit_scenario", fake)
    assert typed("audit", "har-soft-vote", "--runs", "5000", "--json")[0] == 1
    assert asked == [("har-soft-vote", True, 5000)]


WHOLE = ("--rounds", "16", "--delta", "1e-5")


@pytest.fixture
def check(done):
    return partial(done, "check-claim", *WHOLE)


def test_noise_is_told_by_a_multiplier_or_by_a_deviation_and_a_sensitivity(check):
    exact = gaussian.epsilon(1e-5, 4 / 8)
    for given in (
        ("--noise-multiplier", "8"),
        ("--noise-std", "16", "--clip-norm", "2"),
        ("--noise-std", "24", "--sensitivity", "3"),
        ("--noise-multiplier", "4", "--clip-norm", "2", "--sensitivity", "1"),
    ):
        record = json.loads(check(*given, "--json"))
        found = {(one["unit"], one["adjacency"]): one["epsilon"] for one in record["epsilons"]}
        assert record["claim"] is None
        assert found["row", "add_remove"] == pytest.approx(exact)
        assert found["row", "replace"] > exact


def test_a_claim_is_told_beside_what_is_spent_and_what_it_rests_on(check):
    told = check("--noise-multiplier", "8", "--claimed", "1", "--clipped", "party")
    assert re.search(r"epsilon.*1.*add_remove", told)
    assert "- the contribution of each party is clipped by itself" in told
    assert json.loads(check("--noise-multiplier", "8", "--claimed", "9", "--json"))["claim"]["holds"] is True


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "--noise-multiplier or --noise-std"),
        (("--noise-multiplier", "1", "--noise-std", "1"), "got both"),
        (("--noise-multiplier", "1", "--clip-norm", "0"), "--clip-norm must be"),
        (("--noise-multiplier", "1", "--sensitivity", "-1"), "--sensitivity must be"),
        (("--noise-multiplier", "1", "--sampling-rate", "2"), "rate must be"),
        (("--noise-multiplier", "1", "--claimed", "-2"), "claimed epsilon must be"),
        (("--noise-multiplier", "1", "--claimed", "2", "--unit", "person"), "--rows-per-person"),
    ],
)
def test_bad_input_is_named(refused, arguments, text):
    assert text in refused("check-claim", *WHOLE, *arguments)
