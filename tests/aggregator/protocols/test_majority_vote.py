"""The majority vote: its options, rows that are protected, and that the majority is what is learned from."""

import numpy as np
import pytest
from support.voting import ensemble, instance

from aggregator.ensembles.output import perturb_output
from aggregator.protocols.majority_vote import MajorityVote
from federation.contract.errors import InputError


def test_what_makes_no_guarantee_is_refused_and_more_parties_make_no_party_matter_less():
    with pytest.raises(InputError, match="regularisation"):
        MajorityVote(regularisation=0.0)
    with pytest.raises(InputError):
        MajorityVote(sensitivity="public_features", protect="party_and_auxiliary_row")
    # One may tip every label, however many there are.
    few, many = (
        MajorityVote(regularisation=0.1).prepare(ensemble(*instance(5, parties=parties), 3)) for parties in (3, 300)
    )
    assert few.sensitivity == pytest.approx(many.sensitivity, rel=1e-4)


@pytest.mark.parametrize("sensitivity", ["published", "tight", "diameter", "public_features"])
def test_the_minimiser_of_the_majoritys_labels_gets_the_noise(sensitivity):
    votes, rows = instance(4)
    world = ensemble(votes, rows, 3)
    found = MajorityVote(sensitivity=sensitivity, regularisation=0.1).prepare(world)
    expected = perturb_output(world, "majority", sensitivity, 0.1)
    np.testing.assert_array_equal(found.value, expected.value)
    assert found.sensitivity == expected.sensitivity
    weights = found.decode(found.value[None], None)[0]
    minimiser = world.minimiser("majority", 0.1)
    np.testing.assert_allclose(weights - weights.mean(axis=0), minimiser - minimiser.mean(axis=0), atol=1e-6)
