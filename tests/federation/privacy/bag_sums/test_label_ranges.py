"""Label ranges so narrow or wide that their parts leave the grid of doubles."""

from __future__ import annotations

import pytest

from federation.errors import InputError
from federation.privacy.bag_sums.accounting import width


@pytest.mark.parametrize("label_range", [(0.0, 5e-324), (0.0, 1e-201), (1.0, 1.0), (2.0, 1.0), (-1.7e308, 1.7e308)])
def test_ranges_whose_parts_lose_digits_are_refused(label_range):
    with pytest.raises(InputError, match="1e-200 or more apart"):
        width(label_range)


def test_narrow_ranges_keep_their_width():
    assert width((0.0, 1e-200)) == 1e-200
    assert width((-8e307, 8e307)) == 1.6e308
