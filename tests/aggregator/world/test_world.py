"""A world as the sessions of its variants see it: its numbers, its releases, and what is done once."""

import pytest

from aggregator.trial.plan import PublicNumbers, VariantPlan
from aggregator.trial.trial import Views, World
from federation.contract.errors import InputError
from federation.contract.query import Noise


def test_a_world_knows_the_numbers_of_its_plan(make_plan, public):
    plan = make_plan(bags=4, smallest_bag=2, largest_bag=9, rows_per_person=3, common_bags=True)
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
        common_bags=True,
    )
    assert world.numbers().features is None
    real = make_plan(classes=(), label_range=(-1.0, 2.0))
    assert World(real, Views(real)).numbers().label_range == (-1.0, 2.0)


@pytest.fixture
def world(make_plan):
    def make(**changes):
        plan = make_plan(**changes)
        return World(plan, Views(plan)).of(plan.variants[0])

    return make


def test_work_is_done_for_the_first_of_equal_keys_and_for_all_variants(world):
    seen, done = world(), []
    other = seen.of(VariantPlan("other", "majority_vote", {}))
    found = [one.once(("key", 1), lambda: done.append(1) or object()) for one in (seen, seen, other)]
    assert found[0] is found[1] is found[2]
    assert len(done) == 1
    assert seen.once(("key", 2), object) is not found[0]


def test_what_is_none_is_known_too(world):
    seen, done = world(), []
    for _ in range(2):
        assert seen.once("nothing", lambda: done.append(1)) is None
    assert len(done) == 1


def test_sessions_belong_to_a_variant(make_plan):
    plan = make_plan()
    nobodys = World(plan, Views(plan))
    assert nobodys.of(plan.variants[0]).own is plan.variants[0]
    with pytest.raises(InputError, match="this world is no variant's"):
        _ = nobodys.own


@pytest.mark.parametrize("classes", [(), ("a", "b", "c")])
def test_other_numbers_of_classes_than_two_are_refused(world, classes):
    world(classes=("a", "b")).require_two_classes()
    with pytest.raises(InputError, match=f"soft_vote is for two classes, and there are {len(classes)}"):
        world(classes=classes).require_two_classes()


def test_what_is_asked_alike_is_one_release_and_all_else_another(world):
    seen, noise = world(), Noise("pure", 1.0)
    name = seen.release(noise, (1, None)).name
    assert seen.of(VariantPlan("twin", "soft_vote", {})).release(noise, (1, None)).name == name
    others = [
        seen.release(Noise("pure", 2.0), (1, None)),
        seen.release(Noise("gaussian", 1.0), (1, None)),
        seen.release(noise, (2, None)),
        seen.of(VariantPlan("other", "majority_vote", {})).release(noise, (1, None)),
        world(world="another-world").release(noise, (1, None)),
    ]
    assert len({name, *(other.name for other in others)}) == 6


def test_a_seeded_world_names_its_releases_alike_in_every_run_and_others_anew(world):
    assert world().named("a", 1) == world().named("a", 1)
    fresh = {"noise_seed": None}
    first, second = world(**fresh), world(**fresh)
    assert first.named("a") == first.of(VariantPlan("x", "y", {})).named("a") != second.named("a")
