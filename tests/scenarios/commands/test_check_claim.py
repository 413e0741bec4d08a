"""`federation check-claim` as a person meets it."""

from __future__ import annotations

import json

import pytest

from federation.mechanisms.noise import gaussian
from scenarios.cli import _exit_code

WHOLE = ("--rounds", "16", "--delta", "1e-5")


@pytest.fixture
def check(monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["federation", "check-claim", *arguments])
        code = _exit_code()
        return code, capsys.readouterr()

    return call


def epsilons(printed):
    found = json.loads(printed.out)
    return {(one["unit"], one["adjacency"]): one["epsilon"] for one in found["epsilons"]}, found["claim"]


def test_noise_is_told_by_a_multiplier_or_by_a_deviation_and_a_sensitivity(check):
    exact = gaussian.epsilon(1e-5, 4 / 8)
    for given in (
        ("--noise-multiplier", "8"),
        ("--noise-std", "16", "--clip-norm", "2"),
        ("--noise-std", "24", "--sensitivity", "3"),
        ("--noise-multiplier", "4", "--clip-norm", "2", "--sensitivity", "1"),
    ):
        code, printed = check(*WHOLE, *given, "--json")
        found, claim = epsilons(printed)
        assert (code, claim) == (0, None)
        assert found["row", "add_remove"] == pytest.approx(exact)
        assert found["row", "replace"] > exact


def test_a_claim_is_told_beside_what_is_spent_and_what_it_rests_on(check):
    code, printed = check(*WHOLE, "--noise-multiplier", "8", "--claimed", "1", "--clipped", "party")
    assert code == 0
    assert "The claim of epsilon 1 for one party (add_remove) does not hold" in printed.out
    assert "- the contribution of each party is clipped by itself" in printed.out
    _, printed = check(*WHOLE, "--noise-multiplier", "8", "--claimed", "9", "--json")
    assert epsilons(printed)[1]["holds"] is True


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
def test_bad_input_is_named(check, arguments, text):
    code, printed = check(*WHOLE, *arguments)
    assert code == 2
    assert text in printed.err
