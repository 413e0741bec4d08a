"""All protocols of this project keep to the contract, and the checks would see it if they did not."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from aggregator.contract.registry import protocol, protocol_names
from aggregator.contract.worst_case import PrivateWorstCase
from aggregator.protocols.label_sums import NoisyLabelSums
from aggregator.protocols.mean_operator.mean_operator import MeanOperator
from aggregator.regressions import worst_case as worst_labels
from scenarios.testing import CheckFailed, check_protocol, checks
from scenarios.testing.checks import Checked, _audit

SMALL = {"noisy_weighted_llp": {"size": 4}, "weighted_lba": {"size": 4}}  # bags that parties of 24 rows can form
FURTHER = [
    ("soft_vote", {"share": "raw", "noise": "gaussian"}),
    ("soft_vote", {"noise": "off"}),
    ("class_ratio", {"estimator": "whitened", "submit": "embedding", "protect": "row", "noise": "gaussian"}),
    ("mean_operator", {"trust": "secure"}),
    ("mean_operator", {"noise": "published_laplace"}),
    ("mean_operator", {"noise": "randomised_response"}),
    ("error_marginals", {"noise": "off"}),
]
ALWAYS = ("mean_operator", "soft_vote")  # of noise that parties add, and of noise that the aggregator adds
CASES = [
    *(
        pytest.param(name, SMALL.get(name, {}), id=name, marks=() if name in ALWAYS else pytest.mark.slow)
        for name in protocol_names()
    ),
    *(pytest.param(name, options, id=f"{name} {options}", marks=pytest.mark.slow) for name, options in FURTHER),
]


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_it_keeps_to_the_contract(kind, options):
    found = list(checks(protocol(kind), [options]))
    assert len(found) > 10
    for name, check in found:
        try:
            check()
        except CheckFailed as failed:
            pytest.fail(f"{kind} {options}: {name}: {failed}")


@dataclass(frozen=True)
class Nothing:
    """Not a protocol."""

    task: ClassVar[str] = "classification"


def test_what_is_no_protocol_is_told_all_that_it_lacks_and_what_no_package_installs_is_told_so():
    @dataclass(frozen=True)
    class Copy(MeanOperator):
        """A copy."""

    for kind, lacking in ((Nothing, "noise_at"), (Copy, r"federation\.protocols")):
        with pytest.raises(CheckFailed, match=lacking):
            check_protocol(kind)


def test_a_worst_case_without_any_difference_has_no_power(monkeypatch):
    """A protocol that supplies equal neighbours would pass every audit, were its twin not asked for."""
    monkeypatch.setattr(
        NoisyLabelSums, "worst_case", lambda self, units, public: worst_labels.worst_labels(0, public, 20_000)
    )
    with pytest.raises(CheckFailed):
        _audit(Checked(NoisyLabelSums, "label_sums", {}))


def test_private_worst_cases_need_two_sides_and_nothing_else():
    assert PrivateWorstCase.__abstractmethods__ == {"side"}
