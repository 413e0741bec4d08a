"""What a party's labels may be, and what a node's configuration may say."""

import numpy as np
import pytest

from federation.contract.errors import InputError
from parties.holdings import Cohort, Holdings
from parties.loading import load

CONFIG = {"holdings": "{}", "first-party": 0, "parties": 1}


@pytest.mark.parametrize("labels", [[0, 1, 2], [0, -1, 1], [0.0, 1.0, 1.0], [[0], [1], [0]]])
def test_class_codes_out_of_form_are_refused(labels):
    with pytest.raises(InputError, match="class code"):
        Holdings(4, np.zeros((3, 2)), np.asarray(labels)).class_codes(4, 2)


def test_labels_of_another_party_are_refused():
    with pytest.raises(InputError, match="party 4"):
        Holdings(4, np.zeros((2, 2)), np.array([0, 1])).class_codes(3, 2)


@pytest.mark.parametrize(
    ("given", "public"), [(True, True), (False, False), ("false", False), ("true", False), (1, False)]
)
def test_features_are_public_only_where_that_is_said_plainly(given, public):
    assert Cohort.from_config({**CONFIG, "public-features": given}).public_features is public


def test_a_node_with_an_allowance_answers_nothing_without_noise():
    cohort = Cohort("{}", 0, 1, None, allowance="{}")
    with pytest.raises(InputError, match="under a guarantee only"):
        load(cohort, None)
