"""The largest sizes that may be asked for."""

from __future__ import annotations

import numpy as np
import pytest

from federation.contract.errors import InputError
from federation.contract.query import MOST_FEATURES, MOST_WIDTH, require_waves
from federation.queries.marginals import Hypothesis


@pytest.mark.parametrize("dimensions", [2, 100, MOST_FEATURES])
def test_even_numbers_of_features_up_to_the_limit_are_allowed(dimensions):
    require_waves(dimensions)


@pytest.mark.parametrize("dimensions", [-2, 0, 7, MOST_FEATURES + 2, 10**22])
def test_other_numbers_are_refused(dimensions):
    with pytest.raises(InputError, match=f"dimensions must be an even number from 2 to 100000, got {dimensions}$"):
        require_waves(dimensions)


@pytest.mark.parametrize(("width", "fits"), [(MOST_WIDTH, True), (MOST_WIDTH + 1, False)])
def test_a_hypothesis_may_have_layers_of_the_limit_and_no_wider(width, fits):
    parameters = np.zeros(2 * width + width + 1)
    if fits:
        assert Hypothesis(np.array([1, width, 1]), parameters).sizes[1] == width
    else:
        with pytest.raises(InputError, match="wide"):
            Hypothesis(np.array([1, width, 1]), parameters)
