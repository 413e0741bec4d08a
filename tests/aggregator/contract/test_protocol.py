"""What a protocol is unless it says otherwise."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass

import pytest

from aggregator.contract.protocol import Place, Promise, Protocol, Refused, Requires, Rule, Trust
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.contract.guarantee import NoGuarantee

DONE = {"noise_at", "promise", "begin", "worst_case"}


@dataclass(frozen=True)
class Plain(Protocol):
    """Says only what every protocol must."""

    def noise_at(self, trust: Trust) -> Place | Refused:
        return Place.PARTY if trust is Trust.NONE else Refused("parties trust nobody")

    def promise(self, public: PublicNumbers, epsilon: float, trust: Trust) -> Promise:
        return Promise(NoGuarantee("noise is off"), ())

    def begin(self, world, epsilon, draws):
        raise AssertionError("nobody begins it")

    def worst_case(self, units, public):
        raise AssertionError("nobody audits it")


def test_a_protocol_needs_classes_of_any_number_and_takes_any_setting():
    assert Requires() == Requires("classes", False, False, False, False, ())
    assert Plain().check_setting([{"whiten": 3}], {"name": "GaussianNB"}) is None


def test_without_a_formula_no_error_is_expected_and_no_option_is_idle():
    plain = Plain()
    assert plain.expected_error(PublicNumbers(1e-6), 1.0) is None
    assert (plain.idle(), plain.why_default) == ({}, ())
    assert Plain.why_refused("noise", "loud") is None


@pytest.mark.parametrize("name", ["default", "rule", "validated"])
@pytest.mark.parametrize("text", ["", "  ", "two\nlines", None])
def test_a_rule_is_three_sentences_of_one_line(name, text):
    assert Rule("noise: pure", "it needs no delta", "digits: .29").rule == "it needs no delta"
    said = {"default": "noise: pure", "rule": "it needs no delta", "validated": "digits: .29", name: text}
    with pytest.raises(InputError, match=f"{name} of a Rule must be a sentence on one line, got"):
        Rule(**said)


@pytest.mark.parametrize("missing", sorted(DONE))
def test_what_a_protocol_must_say_has_no_default(missing):
    found = type("Partial", (Protocol,), {name: vars(Plain)[name] for name in DONE - {missing}})
    with pytest.raises(TypeError, match=missing):
        found()


def test_trusts_are_named_as_scenarios_name_them_the_most_first():
    assert [str(trust) for trust in Trust] == ["aggregator", "secure", "none"]
    assert Trust("secure") is Trust.SECURE
    assert Plain().noise_at(Trust.SECURE) == Refused("parties trust nobody")
    assert Plain().noise_at(Trust.NONE) is Place.PARTY


def test_needs_do_not_change():
    with pytest.raises(FrozenInstanceError):
        Requires().bags = True
