"""What every calibrated mechanism promises, and which units, adjacencies and calls it refuses."""

from __future__ import annotations

import pytest

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Unit
from federation.mechanisms.bag_sums.noisy_labels import laplace_bag_sums
from federation.mechanisms.counts import calibration as counts
from federation.mechanisms.labels import calibration as labels
from federation.mechanisms.noise.mechanism import Replacement

OWN, FURTHER = Assumption("its own", Check.ENFORCED), Assumption("the caller's", Check.CHECKED)


class Noise(Replacement):
    """A claim and nothing else."""

    name, epsilon, delta, gaussian_mu = "noise", 0.5, 1e-6, 0.1
    units, assumptions = (Unit.LABEL, Unit.ROW), (OWN,)
    parameters = {"scale": 3}  # noqa: RUF012


def test_a_claim_becomes_a_guarantee():
    made = Noise().guarantee(Unit.ROW, further=(FURTHER,))
    assert (made.epsilon, made.delta, made.mechanism, made.gaussian_mu) == (0.5, 1e-6, "noise", 0.1)
    assert (made.unit, made.adjacency, made.assumptions) == (Unit.ROW, Adjacency.REPLACE, (FURTHER, OWN))
    assert made.parameters == {"scale": 3}
    assert Noise().guarantee().unit is Unit.LABEL


def test_what_a_mechanism_is_not_for_is_refused():
    with pytest.raises(InputError, match="unit must be label or row for noise, got replace of party"):
        Noise().guarantee(Unit.PARTY)
    with pytest.raises(InputError, match=r"adjacency must be replace .* got add_remove of row"):
        Noise().guarantee(Unit.ROW, Adjacency.ADD_REMOVE)


@pytest.mark.parametrize(
    ("mechanism", "allowed"),
    [
        (counts.calibrate("pure", classes=3, epsilon=1.0, delta=0.0), {Unit.LABEL, Unit.PERSON}),
        (counts.calibrate("laplace_prior", classes=3, epsilon=1.0, delta=0.0), {Unit.LABEL, Unit.PERSON}),
        (labels.calibrate("one_bit", epsilon=1.0, delta=0.0, label_range=(0.0, 1.0)), {Unit.LABEL}),
        (laplace_bag_sums(20, 5, 4, label_range=(0.0, 1.0), epsilon=1.0), {Unit.LABEL}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_labels_are_protected_and_not_rows(mechanism, allowed):
    for unit in Unit:
        if unit in allowed:
            assert mechanism.guarantee(unit).unit is unit
        else:
            with pytest.raises(InputError, match=f"got replace of {unit}"):
                mechanism.guarantee(unit)
