"""The worst pair of an exchange: one unit for each run, about which every query asks what changes with it.

Exchanges of a world with parties that remember what they have answered.
"""

import numpy as np
import pytest
from support.two_class_parties import plan_fixture
from support.worst_pairs import pair_of, without_noise

from aggregator.protocols.error_marginals.session import WorstExchange
from aggregator.server.app import run_plan
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.contract.plugins import Reference
from federation.engines.nodes import Placement
from scenarios.testing.small_trials import SitesGrid

PUBLIC = PublicNumbers(1e-6)
OPTIONS = {
    "add_remove": {"noise": "pure"},
    "replace": {"noise": "gaussian", "adjacency": "replace"},
    "label": {"noise": "pure", "protect": "label"},
    "published": {"noise": "published", "protect": "label"},
}


def exchange(name, units=1, **options):
    return pair_of("error_marginals", OPTIONS[name] | options, PUBLIC, units)


@pytest.mark.parametrize("units", [1, 2])
@pytest.mark.parametrize(("change", "gone", "classes"), [("add_remove", 10, 0), ("replace", 10, 10), ("label", 0, 10)])
def test_neighbours_of_an_exchange_differ_in_one_unit_for_each_run(change, gone, classes, units):
    pair = exchange(change, units)
    assert pair.worst.change == change
    [before], [after] = (pair.worst.side(there, pair.question, 10) for there in (False, True))
    assert before.rows.shape == (10 * units + 1, 2)
    assert len(set(map(tuple, before.rows)) - set(map(tuple, after.rows))) == gone
    assert before.labels.sum() == 0
    assert after.labels.sum() == classes * units


def test_as_many_queries_are_audited_as_the_scenario_agrees_on_and_no_others_are_asked():
    for options, queries in (({"rounds": 3}, 3), ({"rounds": 3, "importance": "always"}, 4)):
        pair = exchange("add_remove", **options)
        assert pair.question.release.queries == queries
        asked = pair.worst.asked(pair.question, 5)
        assert [one.release.query for one in asked] == list(range(queries))
        assert {one.asks for one in asked} == {"errors"}
        classes = [one.hypothesis.predict(np.zeros((1, 2))).tolist() for one in asked]
        assert classes == [[1 - query % 2] for query in range(queries)]
    sums = pair_of("mean_operator", {}, PUBLIC).question
    with pytest.raises(InputError, match="mean_operator"):
        WorstExchange("", np.eye(2), 1).side(False, sums, 1)


def exact_counts(pair, there):
    """Of the two bins of one run in an exchange of three queries, worked out by hand."""
    worst, queries = pair.worst, 3
    rows, errors = np.zeros((2, 1, queries, worst.public.shape[1], 2))
    if not (there and worst.change == "add_remove"):
        place = int(there and worst.change == "replace")
        rows[..., place] = worst.changed
        errors[:, :, :, place] = worst.changed * np.not_equal(1 - np.arange(queries) % 2, int(there))[:, None]
    return {"rows": rows, "errors": errors}


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("units", [1, 2])
@pytest.mark.parametrize("name", OPTIONS)
def test_its_counts_are_those_that_a_party_answers_without_noise(name, units, there):
    pair = exchange(name, units, rounds=3)
    exact, seen = exact_counts(pair, there), without_noise(pair, 5, there)
    assert set(exact) == set(seen) == {"errors", "rows"}
    for part in exact:
        np.testing.assert_array_equal(seen[part], np.repeat(exact[part], 5, axis=0))


@pytest.mark.parametrize("name", OPTIONS)
def test_every_query_asks_about_what_changes(name):
    pair = exchange(name, rounds=3)
    before, after = (exact_counts(pair, there) for there in (False, True))
    moved = sum(np.abs(before[part] - after[part]) for part in ("errors", "rows"))
    assert (moved.sum(axis=-1) >= 1).all()  # in every column


plan = plan_fixture("error_marginals", {"constant": {"learner": "linear", "rounds": 1}})


def test_a_second_run_begins_exchanges_of_its_own(plan, tmp_path):
    """Its answers are paid for again; under the names of the first run parties would refuse them."""
    chosen = plan(epsilons=(1.0,), draws=1, parties=1, parties_per_node=1, noise_seed=None)
    chosen = chosen.changed(simulation=False)
    grid = SitesGrid()
    for runs in (1, 2):
        grid.assign(Placement(1, 1, Reference("support.two_class_parties:Parties"), seed=1))
        run_plan(grid, chosen)
        assert [cost.query for cost in grid.costs[0]] == [0] * runs
        assert len({cost.release for cost in grid.costs[0]}) == runs
