"""What a protocol is unless it says otherwise.

Rules of options: what clashes is refused, and the refusal says which option and what to do. Metrics by which variants
are compared, and what a task is unless it says otherwise.
"""

import math
from dataclasses import FrozenInstanceError, dataclass

import pytest

from aggregator.contract.protocol import (
    Metric,
    Place,
    Promise,
    Protocol,
    Refused,
    Requires,
    Rule,
    Task,
    Trust,
    refuse_misplaced,
    refuse_public_reach,
    require_positive,
)
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


def test_trusts_are_named_as_scenarios_name_them_and_a_sensitivity_of_the_rows_protects_none_of_them():
    assert Requires() == Requires("classes", False, False, False, False, ())
    with pytest.raises(FrozenInstanceError):
        Requires().bags = True
    plain = Plain()
    assert plain.check_setting([{"whiten": 3}], {"name": "GaussianNB"}) is None
    assert plain.expected_error(PublicNumbers(1e-6), 1.0) is None
    assert (plain.idle(), plain.why_default) == ({}, ())
    assert Plain.why_refused("noise", "loud") is None
    assert [str(trust) for trust in Trust] == ["aggregator", "secure", "none"]
    assert Trust("secure") is Trust.SECURE
    assert Plain().noise_at(Trust.SECURE) == Refused("parties trust nobody")
    assert Plain().noise_at(Trust.NONE) is Place.PARTY
    refuse_public_reach("public_features", "party")
    refuse_public_reach("tight", "party_and_auxiliary_row")
    with pytest.raises(InputError, match=r"protect.*party_and_auxiliary_row"):
        refuse_public_reach("public_features", "party_and_auxiliary_row")


@pytest.mark.parametrize("name", ["default", "rule", "validated"])
@pytest.mark.parametrize("text", ["", "  ", "two\nlines", None])
def test_a_rule_is_three_sentences_of_one_line(name, text):
    assert Rule("noise: pure", "it needs no delta", "digits: .29").rule == "it needs no delta"
    said = {"default": "noise: pure", "rule": "it needs no delta", "validated": "digits: .29", name: text}
    with pytest.raises(InputError, match=f"{name}"):
        Rule(**said)


@pytest.mark.parametrize("missing", sorted(DONE))
def test_what_a_protocol_must_say_has_no_default(missing):
    found = type("Partial", (Protocol,), {name: vars(Plain)[name] for name in DONE - {missing}})
    with pytest.raises(TypeError, match=missing):
        found()


@dataclass(frozen=True)
class Options:
    size: int = 4
    widths: tuple[int, ...] = (3, 2)


@pytest.mark.parametrize(("options", "words"), [
    (Options(size=5), "size belongs to learner: network; remove it or choose that"),
    (Options(5, (1,)), "size and widths belong to learner: network; remove them or choose that"),
    (Options(widths=[2, 3]), "widths belongs to learner: network; remove it or choose that"),
])  # fmt: skip
def test_options_are_refused_away_from_home_when_they_are_not_the_defaults(options, words):
    refuse_misplaced(options, ("size", "widths"), "learner: network", True)
    refuse_misplaced(options, (), "learner: network", False)
    refuse_misplaced(Options(widths=[3, 2]), ("size", "widths"), "learner: network", False)
    with pytest.raises(InputError, match=f"^{words}$"):
        refuse_misplaced(options, ("size", "widths"), "learner: network", False)
    require_positive("ridge", 5e-324)
    for value in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InputError, match=rf"ridge.*{value}"):
            require_positive("ridge", value)


@pytest.mark.parametrize(("metric", "higher", "mean"), [
    (Metric("accuracy", "accuracies", True, "accuracy"), True, "mean accuracy"),
    (Metric("mse", "errors", False, "mean squared error"), False, "mean squared error"),
])  # fmt: skip
def test_the_better_of_two_values_is_the_higher_or_the_lower_one_and_the_mean_of_a_mean_is_said_once(
    metric, higher, mean
):
    assert metric.better(0.9, 0.1) == higher
    assert metric.better(0.1, 0.9) != higher
    for other in (0.5, float("nan")):  # not better than itself or than what is no number
        assert not metric.better(0.5, other)
        assert not metric.better(other, 0.5)
    assert metric.mean == mean
    task = Task("ranking", "real", metric, "somewhere:score")
    assert (task.baselines, task.targets) == ({"pooled"}, False)
