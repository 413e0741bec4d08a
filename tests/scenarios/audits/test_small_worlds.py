"""The small worlds of audits: plans of a worst case, and parties that hold its plain arrays."""

from __future__ import annotations

import numpy as np
import pytest
from support.worst_pairs import variant_of, worst_of

from aggregator.contract.worst_case import Rows
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from scenarios.audits.auditor import begun, chosen_of, cohort, plan, private_question, public_table

PUBLIC = PublicNumbers(0.01, classes=3, rows_per_person=2, label_range=(-1.0, 2.0))
KINDS = (
    "class_ratio", "soft_vote", "majority_vote", "parameter_average", "label_sums", "private_labels",
    "noisy_weighted_llp", "weighted_lba", "mean_operator", "error_marginals",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_world_is_that_of_the_worst_case_at_the_scenarios_epsilon_and_delta(kind):
    variant, worst = variant_of(kind, {}), worst_of(kind, {}, PUBLIC)
    made = plan(worst, variant, 0.7, 0.02, there=False)
    assert (made.epsilons, made.delta, made.draws, made.budget) == ((0.7,), 0.02, 1, None)
    for name, value in worst.world.items():
        assert getattr(made, name) == value
    [only] = made.variants
    assert (only.name, only.kind, only.options) == (variant.name, kind, variant.options)
    np.testing.assert_array_equal(made.public.call().rows, worst.public)
    assert made.simulation
    assert made.noise_seed is not None  # so that an audit finds the same each time


def test_a_public_row_that_is_protected_is_another_one_on_the_other_side():
    options = {"perturb": "output", "protect": "party_and_auxiliary_row"}
    variant, worst = variant_of("soft_vote", options), worst_of("soft_vote", options, PUBLIC)
    here, there = (plan(worst, variant, 1.0, 0.01, side).public.call().rows for side in (False, True))
    np.testing.assert_array_equal(here, worst.public)
    np.testing.assert_array_equal(there, worst.public_there)
    assert (here != there).any()


def test_options_that_only_make_a_world_larger_are_small():
    variant = variant_of("mean_operator", {"expansion": "fourier", "dimensions": 300, "noise": "laplace"})
    worst = worst_of("mean_operator", variant.options, PUBLIC)
    session = begun(worst, variant, 1.0, 0.01)
    assert session.feature_map.dimension == 2
    assert variant.options["dimensions"] == 300
    assert private_question(session).noise.kind == "laplace"


@pytest.mark.parametrize("kind", KINDS)
def test_a_session_begins_in_it_and_asks(kind):
    variant, worst = variant_of(kind, {}), worst_of(kind, {}, PUBLIC)
    session = begun(worst, variant, 1.0, 0.01)
    assert list(session.questions())


def test_options_that_clash_are_refused():
    variant = variant_of("class_ratio", {})
    with pytest.raises(InputError, match="label_share must lie between 0 and 1"):
        chosen_of(type(variant)("v", "class_ratio", {"label_share": 2.0}, {}, False))


def test_parties_hold_the_rows_of_a_worst_case_by_turns():
    held = [Rows(np.full((2, 1), value), np.array([0, 1]), np.array([0, 1]), np.array([5, 6])) for value in (1.0, 2.0)]
    with cohort(held, 5) as node:
        assert (list(node.parties), node.seed is not None) == (list(range(5)), True)
        for party in node.parties:
            found = node.provider.holdings(party)
            assert found.party == party
            np.testing.assert_array_equal(found.rows, held[party % 2].rows)
            np.testing.assert_array_equal(found.labels, held[party % 2].labels)
            np.testing.assert_array_equal(found.bags, held[party % 2].bags)
            np.testing.assert_array_equal(found.persons, held[party % 2].persons)
        assert node.provider.evaluation() is None


def test_worlds_beside_each_other_do_not_mix_and_nothing_stays():
    from scenarios.audits import auditor as small_worlds

    before = dict(small_worlds._held)
    one, other = ([Rows(np.full((1, 1), value), np.zeros(1))] for value in (1.0, 2.0))
    with cohort(one, 1) as first, cohort(other, 1) as second:
        assert (first.provider.holdings(0).rows[0, 0], second.provider.holdings(0).rows[0, 0]) == (1.0, 2.0)
        with pytest.raises(ZeroDivisionError), cohort(one, 1):
            raise ZeroDivisionError
    assert small_worlds._held == before


def test_columns_of_a_public_table_are_called_by_their_numbers():
    table = public_table([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert table.rows.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert (table.columns, table.text_columns) == (("0", "1", "2"), ())
