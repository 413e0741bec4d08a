"""What is known of a world before anything is asked, and what follows from it."""

import math
from dataclasses import FrozenInstanceError, fields

import pytest

from aggregator.contract.promise import Sent
from aggregator.contract.protocol import Trust
from aggregator.contract.registry import protocol, protocol_names
from aggregator.world.public_numbers import PublicNumbers, product
from aggregator.world.views import Views
from aggregator.world.world import World
from federation.contract.guarantee import Guarantee, NoGuarantee


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((), 1),
        ((7,), 7),
        ((2, 3, 4), 24),
        ((5, 0), 0),
        ((2**40, 2**40), 2**80),
        ((None,), None),
        ((2, None, 3), None),
        ((0, None), None),
    ],
)
def test_a_product_is_known_where_all_its_sizes_are(sizes, expected):
    assert product(*sizes) == expected


def test_before_any_data_is_read_only_delta_is_known():
    numbers = PublicNumbers(1e-6)
    unknown = {one.name for one in fields(numbers) if getattr(numbers, one.name) is None}
    assert unknown == {
        "parties", "classes", "features", "public_rows", "bags", "smallest_bag", "largest_bag", "label_range",
    }  # fmt: skip
    assert (numbers.delta, numbers.draws, numbers.rows_per_person) == (1e-6, 1, 0)
    with pytest.raises(FrozenInstanceError):
        numbers.delta = 0.5


def test_a_world_knows_the_numbers_of_its_plan(make_plan, public):
    plan = make_plan(bags=4, smallest_bag=2, largest_bag=9, rows_per_person=3)
    world = World(plan, Views(plan))
    assert world.numbers(7) == PublicNumbers(
        1e-6,
        draws=3,
        parties=40,
        classes=3,
        features=7,
        public_rows=len(public.rows),
        bags=4,
        smallest_bag=2,
        largest_bag=9,
        rows_per_person=3,
    )
    assert world.numbers().features is None
    real = make_plan(classes=(), label_range=(-1.0, 2.0))
    assert World(real, Views(real)).numbers().label_range == (-1.0, 2.0)


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
