"""Target sets have the exact shares of test rows, and declared floors are compared with the bags of a simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import refused

import scenarios
from aggregator.contract.worst_case import Rows
from federation.contract.errors import InputError
from federation.queries.bags import Bags
from parties.responses.bags import bags_of
from scenarios.audits.auditor import cohort
from scenarios.data.tables import Table
from scenarios.runs.runner import preview, usable_data
from scenarios.runs.trial import split_of, worlds
from scenarios.settings.schema import resolve
from scenarios.simulated.partition import cut, smallest_count
from scenarios.simulated.simulation import split
from scenarios.simulated.targets import target_sets, wants_targets

N = 3000


def toy(labels, classes, **changes):
    """A table of one column that numbers the rows."""
    return Table("toy", ("row",), classes, labels, (np.arange(len(labels))[:, None],), **changes)


TABLE = toy(np.random.default_rng(0).choice(3, N, p=[0.2, 0.3, 0.5]), ("low", "mid", "high"))
TEST = np.arange(500, 2000)


def drawn(targets=None, table=TABLE, test=TEST, seed=1, split=0):
    return target_sets(table, test, **(targets or {}), seed=seed, split=split)


@settings(derandomize=True)
@given(
    rows=st.none() | st.integers(1, 250),
    shares=st.lists(st.floats(0, 1), min_size=1, max_size=4, unique=True),
    vary=st.sampled_from([None, "low", "mid", "high"]),
    seed=st.integers(0, 2**40),
)
def test_sets_have_the_shares_that_were_asked_for(rows, shares, vary, seed):
    varied = TABLE.classes.index(vary or "low")
    sets = drawn(dict(rows=rows, shares=tuple(shares), vary=vary), seed=seed)
    assert [one.share for one in sets] == shares
    sizes = {len(one.indices) for one in sets}
    assert len(sizes) == 1
    assert rows is None or sizes == {rows}
    for one in sets:
        assert len(np.unique(one.indices)) == len(one.indices)
        assert np.isin(one.indices, TEST).all()
        counts = np.bincount(TABLE.labels[one.indices], minlength=3)
        np.testing.assert_array_equal(one.proportions, counts / counts.sum())
        assert abs(counts[varied] - one.share * counts.sum()) < 1
        others = np.delete(counts, varied)
        assert others.max() - others.min() <= 1


def test_by_default_the_first_class_takes_shares_from_one_to_nine_tenths():
    sets = drawn()
    np.testing.assert_allclose([one.proportions[0] for one in sets], np.arange(1, 10) / 10, atol=0.002)
    supply = np.bincount(TABLE.labels[TEST])
    assert len(sets[0].indices) == pytest.approx(supply[0] / 0.9, abs=2)  # the rarest class decides
    plenty = toy(np.arange(6000) % 2, ("a", "b"))
    assert len(drawn(table=plenty, test=np.arange(6000))[0].indices) == 1000
    assert "Table" not in repr(sets[0])


def test_sets_depend_on_seed_split_and_their_own_share_only_and_larger_ones_hold_smaller_ones():
    [one] = drawn(dict(rows=50, shares=(0.5,)))
    again = drawn(dict(rows=50, shares=(0.3, 0.5)))[1]
    np.testing.assert_array_equal(one.indices, again.indices)
    others = [drawn(dict(rows=50, shares=(0.5,)), **change)[0] for change in ({"seed": 2}, {"split": 1})]
    others.append(drawn(dict(rows=50, shares=(0.6,)))[0])
    for other in others:
        assert set(other.indices) != set(one.indices)
    sets = [set(drawn(dict(rows=rows, shares=(0.25,)))[0].indices) for rows in (10, 40, 160)]
    assert sets[0] < sets[1] < sets[2]


def test_every_test_row_of_a_class_is_drawn_equally_often():
    """400 splits, each with 20 of 100 rows of a class; five deviations either way."""
    table, counts = toy(np.arange(200) % 2, ("a", "b")), np.zeros(200)
    for trial in range(400):
        [one] = drawn(dict(rows=40, shares=(0.5,)), table=table, test=np.arange(200), split=trial)
        counts[one.indices] += 1
    assert np.abs(counts - 80).max() < 5 * np.sqrt(400 * 0.2 * 0.8)


@pytest.mark.parametrize(
    ("targets", "test", "part"),
    [
        (dict(rows=500, shares=(0.1, 0.9)), TEST, r"500.*0\.9.*low.*450.*low.*data\.targets\.rows"),
        (dict(rows=2000, shares=(0.1,), vary="high"), TEST, r"900.*low"),
        (dict(vary="hgih"), TEST, r"data\.targets\.vary.*toy.*hgih"),
        (dict(shares=(0.0,)), TEST[TABLE.labels[TEST] != 1], r"1.*mid.*0"),
    ],
    ids=["rows of the largest share", "rows of another class", "no class", "no rows of a class"],
)
def test_sets_that_cannot_be_drawn(targets, test, part):
    refused(part, drawn, targets, test=test)


def test_who_wants_targets():
    plain = {"data": {"source": "digits"}, "parties": {"count": 5}, "privacy": {"epsilon": 1}}
    assert not wants_targets(resolve(plain))
    assert wants_targets(resolve(plain, ["protocols=[{kind: pooled}, {kind: class_ratio}]"]))


def document(floor, **changes):
    return {
        "data": {"source": "digits", "auxiliary": 100, "test": 300},
        "parties": {"count": 2, "partition": {"majority": 0.05}},
        "protocols": [{"kind": "class_ratio"}, {"kind": "class_ratio", "noise": "dirichlet_floor", "floor": floor}],
        "privacy": {"epsilon": 4, "delta": 0.05},
        "trials": {"splits": 2, "noise": 1},
        **changes,
    }


def smallest(known, number):
    world = split(split_of(resolve(known), number, None))
    return smallest_count(world.cut, world.table)


def test_a_floor_that_the_bags_do_not_keep_is_refused_before_anything_is_written(tmp_path):
    least = smallest(document(1), 0)
    assert least > 2
    usable_data(worlds(resolve(document(least - 1)), None))
    declared = (
        rf"'class_ratio-dirichlet_floor-floor={least}' declares the floor {least}.* in split 0 a bag has {least} "
    )
    with pytest.raises(InputError, match=rf"{declared}of a class; lower it to {least - 1}, .*dirichlet_shifted"):
        scenarios.run(document(least), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    refused(None, preview, resolve(document(least)), None)


def test_every_swept_floor_and_every_split_is_looked_at_and_none_is_proposed_that_is_not_true():
    known = document(2, parties={"count": 4, "partition": {"dirichlet": 100.0}})
    found = [smallest(known, number) for number in range(8)]
    later = next(number for number, least in enumerate(found) if least < found[0])
    floors = {**known, "protocols": [{"kind": "class_ratio", "noise": "dirichlet_floor", "floor": [1, found[0] - 1]}]}
    usable_data(worlds(resolve({**floors, "trials": {"splits": 1, "noise": 1}}), None))
    with pytest.raises(InputError, match=rf"floor.*{found[0] - 1}.*{later}.*{found[later]}"):
        usable_data(worlds(resolve({**floors, "trials": {"splits": 8, "noise": 1}}), None))
    known = document(1, parties={"count": 40, "partition": {"dirichlet": 0.1}})
    with pytest.raises(InputError, match="0") as caught:
        usable_data(worlds(resolve(known), None))
    assert "lower it" not in str(caught.value)


@settings(derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), min_size=12, max_size=40), st.integers(1, 3))
def test_of_a_persons_rows_those_count_that_the_party_counts(people, most):
    """One party, bags by site: what a party would count, counted from its own answer."""
    person, label = (np.array(part) for part in zip(*people, strict=True))
    table = toy(label, ("0", "1"), groups={"who": person, "site": np.arange(len(label)) % 3})
    dealt = {"parties": 1, "rows": None, "partition": "iid", "seed": 1, "bags": {"by": "site"}, "person": "who"}
    pieces = cut(table, auxiliary=2, test=2, **dealt)
    rows = pieces.party(0)
    with cohort([Rows(np.zeros((len(rows), 1)), label[rows], pieces.bags(0), person[rows])], 1) as node:
        held = bags_of(node, 0, Bags(pieces.bags_per_party, 2, most))
    assert smallest_count(pieces, table, person, most) == held.counts[held.sizes > 0].min()
    assert smallest_count(pieces, table) >= held.counts.min()


def test_a_floor_counts_persons_as_parties_do(tmp_path):
    """Every person has two rows in its bag, of which one counts: half the rows are a floor of no use."""
    labels = np.tile([0, 1], 100)
    path = tmp_path / "pairs.csv"
    lines = [f"{k / 10},{k // 4},{k % 7},{'no' if label == 0 else 'yes'}" for k, label in enumerate(labels)]
    path.write_text("\n".join(["x,who,z,label", *lines]) + "\n")
    known = document(1, parties={"count": 1})
    known["data"] = {"source": str(path), "label": "label", "auxiliary": 20, "test": 80, "targets": {"shares": [0.5]}}
    rows = smallest(known, 0)
    world = split(split_of(resolve({**known, "data": {**known["data"], "person": "who"}}), 0, None))
    people = smallest_count(world.cut, world.table, world.table.groups["who"], 1)
    assert people < rows - 5
    floor = people + 1
    known["protocols"] = [{"kind": "class_ratio", "noise": "dirichlet_floor", "floor": floor}]
    usable_data(worlds(resolve(known), None))
    known["data"]["person"] = "who"
    refused(f"{people}", usable_data, worlds(resolve(known), None))
