import numpy as np
import pytest

from scenarios.simulation import SplitSpec, split


@pytest.fixture
def spec():
    return SplitSpec("digits", None, None, None, None, 200, 0.2, 50, 5, "iid", 1, 0)


def test_parties_hold_the_rows_of_the_cut(spec):
    world = split(spec)
    provider = spec.reference("SimulatedParties").call()
    holdings = provider.holdings(7)
    indices = world.cut.party(7)
    np.testing.assert_array_equal(holdings.rows, world.table.rows(indices))
    np.testing.assert_array_equal(holdings.labels, world.table.labels[indices])


def test_public_private_and_test_rows_are_disjoint(spec):
    world = split(spec)
    parts = [world.cut.auxiliary, world.cut.test, world.cut.order]
    assert len(np.unique(np.concatenate(parts))) == sum(map(len, parts))
    np.testing.assert_array_equal(spec.reference("public_rows").call().rows, world.table.rows(world.cut.auxiliary))
    rows, labels = spec.reference("SimulatedParties").call().evaluation()
    assert len(rows) == len(labels) == len(world.cut.test)


def test_public_rows_carry_no_labels(spec):
    assert set(vars(spec.reference("public_rows").call())) == {"rows", "columns", "text_columns"}
