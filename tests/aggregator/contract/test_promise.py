"""What protocols promise by public numbers, before anything is asked."""

import math

import pytest

from aggregator.contract.protocol import Sent, Trust
from aggregator.contract.registry import protocol, protocol_names
from aggregator.trial.plan import PublicNumbers
from federation.contract.guarantee import Guarantee, NoGuarantee


@pytest.mark.parametrize("kind", protocol_names())
def test_what_leaves_a_party_is_counted_once_all_sizes_are_known(kind):
    whole = PublicNumbers(
        1e-6,
        parties=6,
        classes=2,
        features=5,
        public_rows=100,
        bags=2,
        smallest_bag=400,
        largest_bag=500,
        label_range=(0.0, 1.0),
    )
    for public, known in ((PublicNumbers(1e-6), False), (whole, True)):
        promise = protocol(kind)().promise(public, 0.5, Trust.AGGREGATOR)
        assert isinstance(promise.spends, Guarantee)
        assert promise.spends.epsilon == 0.5
        numbers = [sent.numbers for sent in promise.sends]
        assert numbers
        assert all(isinstance(sent, Sent) and sent.what for sent in promise.sends)
        known = known and kind != "error_marginals"  # whose bins follow from what it learns
        assert (None not in numbers) == known
        assert not known or min(numbers) > 0


@pytest.mark.parametrize("kind", protocol_names())
def test_without_noise_nothing_is_promised_whatever_is_aimed_at(kind):
    chosen = protocol(kind)(noise="off")
    found = {chosen.promise(PublicNumbers(1e-6), one, Trust.AGGREGATOR).spends for one in (0.5, 1.0, math.inf)}
    assert found == {NoGuarantee("noise is off")}
