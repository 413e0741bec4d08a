"""A world as the sessions of its variants see it: its numbers, its releases, and what is done once."""

from aggregator.world.public_numbers import PublicNumbers
from aggregator.world.views import Views
from aggregator.world.world import World


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
