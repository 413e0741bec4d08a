import numpy as np
import pytest

from aggregator.node.releasing import Release
from federation.contract.errors import InputError
from federation.contract.guarantee import NoGuarantee


def test_a_release_needs_a_guarantee():
    with pytest.raises(InputError, match="guarantee"):
        Release("v", np.zeros((1, 2, 3)), None)
    assert Release("v", np.zeros((1, 2, 3)), NoGuarantee("noise is off")).guarantee.to_dict()["non_private"]
