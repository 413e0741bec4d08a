"""Simulated parties that drop out or attack: who they are, and what they send."""

from dataclasses import asdict, replace
from typing import get_args

import numpy as np
import pytest
from support.refusals import refused

from aggregator.trial.feature_fitting import fit
from federation.contract.query import Field, Submission
from federation.engines.codec import decode_submission, encode_submission
from federation.queries.bags import Bags
from federation.queries.votes import IndividualQuestion, Training, VotesQuestion
from parties.party_data.cohort import Cohort, DroppedOut
from parties.responses import votes
from parties.responses.bags import bags_of
from scenarios.runs.trial import split_of
from scenarios.settings.schema import resolve
from scenarios.settings.words import Kind
from scenarios.simulated.partition import smallest_count
from scenarios.simulated.simulation import Conduct, SplitSpec, split

CLASSIFIER = {"name": "logistic", "parameters": {"regularisation": 1e-3}}
REAL = SplitSpec("diabetes", None, None, None, None, 40, 0.2, 5, None, "iid", 1, 0)
KINDS = get_args(Kind)


@pytest.fixture
def spec():
    return SplitSpec("digits", None, None, None, None, 200, 0.2, 50, 5, "iid", 1, 0)


def provider(spec, **conduct):
    return spec.reference("SimulatedParties", conduct=asdict(Conduct(**conduct))).call()


def answer(spec, conduct, kind="votes", first=0, count=50):
    """The answers of a cohort, as its node sends them, and the same by party."""
    public = spec.reference("public_rows").call()
    feature_map = fit([{"whiten": 8}, "unit_norm"], public.rows)
    training = Training(feature_map, 10, CLASSIFIER, spec.split)
    reference = spec.reference("SimulatedParties", conduct=asdict(conduct)).to_json()
    cohort = Cohort(reference, first, count, seed=1)
    if kind == "votes":
        question = VotesQuestion(training, feature_map.transform(public.rows[:60]))
        honest = votes.respond_votes(cohort, question)
    else:
        question = IndividualQuestion(training, 50)
        honest = votes.respond_individual(cohort, question)
    sent = cohort.provider.sent(question, honest)
    name = "votes" if kind == "votes" else "accuracy"
    return sent, dict(zip(sent.parties.tolist(), sent.arrays[name].tolist(), strict=True))


def test_parties_hold_the_rows_of_the_cut_apart_from_test_rows_and_public_rows_without_labels(spec):
    world = split(spec)
    held = provider(spec).holdings(7)
    indices = world.cut.party(7)
    np.testing.assert_array_equal(held.rows, world.table.rows(indices))
    np.testing.assert_array_equal(held.labels, world.table.labels[indices])
    assert held.bags is held.persons is None
    parts = [world.cut.auxiliary, world.cut.test, world.cut.order]
    assert len(np.unique(np.concatenate(parts))) == sum(map(len, parts))
    public = spec.reference("public_rows").call()
    np.testing.assert_array_equal(public.rows, world.table.rows(world.cut.auxiliary))
    assert set(vars(public)) == {"rows", "columns", "text_columns"}
    rows, labels = provider(spec).evaluation()
    assert len(rows) == len(labels) == len(world.cut.test)


@pytest.mark.parametrize("partition", [{"dirichlet": 0.3}, {"quantity": 1.0}])
def test_skewed_parties(spec, partition):
    skewed = replace(spec, partition=partition)
    assert split(skewed).cut.parties == 50
    assert len(provider(skewed).holdings(0).labels) == len(split(skewed).cut.party(0))


def test_attackers_hold_the_same_rows_under_other_labels(spec):
    honest, hostile = provider(spec), provider(spec, hostile=0.2, seed=1)
    chosen = Conduct(hostile=0.2, seed=1).attackers(50)
    assert chosen.sum() == 10
    for party in range(50):
        a, b = honest.holdings(party), hostile.holdings(party)
        np.testing.assert_array_equal(a.rows, b.rows)
        np.testing.assert_array_equal((a.labels + chosen[party]) % 10, b.labels)


def test_dropped_parties_fail_alike_in_every_cohort_and_cost_no_other_its_vote(spec):
    conduct = Conduct(dropout=0.3, seed=1)
    absent = {party for party in range(50) if conduct.drops_out(party)}
    assert 5 < len(absent) < 25
    with pytest.raises(DroppedOut):
        provider(spec, dropout=0.3, seed=1).holdings(min(absent))
    _, everybody = answer(spec, Conduct())
    submission, whole = answer(spec, conduct)
    assert submission.failures == dict.fromkeys(absent, "dropped out")
    assert whole == {party: cast for party, cast in everybody.items() if party not in absent}
    assert whole == answer(spec, conduct, first=0, count=25)[1] | answer(spec, conduct, first=25, count=25)[1]


def test_tampering_replaces_the_answers_of_attackers_only_and_no_scores_that_the_simulation_asks_for(spec):
    _, honest = answer(spec, Conduct())
    conduct = Conduct(hostile=0.2, kind="malformed", seed=1)
    _, sent = answer(spec, conduct)
    attackers = conduct.attackers(50)
    # Of the 16 codes in 4 bits, 10 are classes.
    assert sent == {party: [15] * 60 if attackers[party] else cast for party, cast in honest.items()}
    _, part = answer(spec, conduct, first=20, count=10)
    assert part == {party: sent[party] for party in range(20, 30)}
    _, sent = answer(spec, Conduct(hostile=1.0, kind="malformed", seed=1), "individual")
    assert sent == answer(spec, Conduct(), "individual")[1]


@pytest.fixture
def wards(tmp_path):
    """Own rows of 30 patients in three wards of four hospitals."""
    random = np.random.default_rng(0)
    lines = [
        f"{p % 4},{p % 3},p{p},{random.normal():.3f},{'ab'[random.integers(2)]}" for p in range(30) for _ in "12345"
    ]
    path = tmp_path / "wards.csv"
    path.write_text("\n".join(["hospital,ward,patient,x,label", *lines]) + "\n")
    return {
        "data": {"source": str(path), "label": "label", "auxiliary": 20, "test": 20, "person": "patient"},
        "parties": {"partition": {"by": "hospital"}, "bags": {"by": "ward"}},
        "protocols": [{"kind": "class_ratio"}],
        "privacy": {"epsilon": 1},
    }


def counts(spec, **conduct):
    """The label counts of each party's bags, by the party's own reading of its holdings."""
    world = split(spec)
    cohort = Cohort(spec.reference("SimulatedParties", conduct=asdict(Conduct(**conduct))).to_json(), 0, 50, seed=1)
    declared = Bags(world.cut.bags_per_party, len(world.table.classes))
    return np.array([bags_of(cohort, party, declared).counts for party in range(world.cut.parties)])


def test_a_scenario_says_all_of_a_split_holdings_bag_and_person_and_a_person_at_two_parties_is_refused(wards):
    spec = split_of(resolve(wards), 3, None)
    assert (spec.split, spec.bags, spec.person, spec.label) == (3, {"by": "ward"}, "patient", "label")
    assert spec.groups == ("hospital", "patient", "ward")
    assert spec.reference("public_rows").call().columns == ("x",)
    world, held = split(spec), provider(spec).holdings(2)
    indices, groups = world.cut.party(2), world.table.groups
    assert set(groups["hospital"][indices]) == {2}
    assert held.persons.tolist() == groups["patient"][indices].tolist()
    assert held.bags.tolist() == groups["ward"][indices].tolist()
    assert (world.cut.bags_per_party, len(world.cut.bag_sizes)) == (3, 12)
    wards["parties"] = {"count": 3, "bags": 2}
    refused(r"data\.person.*30", split, split_of(resolve(wards), 0, None))
    wards["parties"] = {"count": 1, "bags": 2}
    assert split(split_of(resolve(wards), 0, None)).cut.bags_per_party == 2


def test_parties_count_the_labels_that_were_prescribed_and_attackers_flip_theirs_before(spec):
    majorities = replace(spec, parties=5, rows=60, bags=4, partition={"majority": 0.05})
    found = counts(majorities)
    assert found.sum(axis=2).tolist() == [[15] * 4] * 5
    assert found.reshape(20, 10).argmax(axis=1).tolist() == [(4 * k + b) % 10 for k in range(5) for b in range(4)]
    assert smallest_count(split(majorities).cut, split(majorities).table) == found.min()
    bagged = replace(spec, parties=10, rows=40, bags=2)
    honest, flipped = counts(bagged), counts(bagged, hostile=1.0)
    np.testing.assert_array_equal(np.roll(honest, 1, axis=2), flipped)


def test_parties_hold_real_labels_in_the_declared_range_and_test_rows_their_true_ones_whoever_attacks():
    clipped = replace(REAL, label_range=(50.0, 200.0), outside="clip")
    for spec, (lo, hi) in ((REAL, (25.0, 346.0)), (clipped, (50.0, 200.0))):
        world = split(spec)
        held = provider(spec).holdings(3)
        assert held.labels.dtype == np.float64
        np.testing.assert_array_equal(held.labels, world.table.labels[world.cut.party(3)])
        assert world.table.label_range == (lo, hi)
    truth = split(REAL).table.labels
    np.testing.assert_array_equal(split(clipped).table.labels, np.clip(truth, 50, 200))
    refused("diabetes", split, replace(REAL, label_range=(50.0, 200.0)))
    attacked = provider(REAL, hostile=1.0, kind="flip", seed=1)
    _, labels = attacked.evaluation()
    np.testing.assert_array_equal(labels, split(REAL).table.labels[split(REAL).cut.test])
    honest = provider(REAL).holdings(2)
    np.testing.assert_allclose(attacked.holdings(2).labels, 371.0 - honest.labels)


def test_public_rows_of_a_file_leave_all_other_rows_alone(tmp_path):
    own, public = tmp_path / "own.csv", tmp_path / "public.csv"
    own.write_text("x,city,y\n" + "".join(f"{i},{'RB'[i % 2]},{i % 3 % 2}\n" for i in range(50)))
    public.write_text("city,x\nR,-1\nB,-2\nZ,-3\n")
    spec = SplitSpec(str(own), "y", None, None, None, str(public), 0.2, 4, None, "iid", 1, 0)
    found = spec.reference("public_rows").call()
    assert found.rows[:, 0].tolist() == [-1, -2, -3]
    assert (found.columns, found.text_columns) == (("x", "city"), (1,))
    cut = split(spec).cut
    assert (len(cut.auxiliary), len(cut.test), len(cut.order), cut.shifted) == (0, 10, 40, True)
    same = split(replace(spec, auxiliary=5)).cut
    np.testing.assert_array_equal(same.test, cut.test)


def test_parties_at_once_are_each_party_alone(spec):
    """With attackers and absentees, from the first party of the cohort or a later one."""
    some = provider(spec, dropout=0.3, hostile=0.3, kind="random", seed=3)
    for parties in (range(50), range(20, 33)):
        held, absent = some.held(parties)
        alone = {}
        for party in parties:
            try:
                alone[party] = some.holdings(party)
            except DroppedOut:
                assert absent[party] == "dropped out"
        assert held.parties.tolist() == list(alone)
        assert len(held.parties) + len(absent) == len(parties)
        for (rows, labels), one in zip(held.each(), alone.values(), strict=True):
            np.testing.assert_array_equal(rows, one.rows)
            np.testing.assert_array_equal(labels, one.labels)


def test_parties_drop_out_with_the_probability_and_by_themselves():
    def absent(**changes):
        conduct = Conduct(**{"dropout": 0.3, "seed": 1, **changes})
        return np.array([conduct.drops_out(party) for party in range(4000)])

    once = absent()
    assert abs(once.mean() - 0.3) < 5 * np.sqrt(0.21 / 4000)
    np.testing.assert_array_equal(once, absent())
    assert not (once & ~absent(dropout=0.6)).any()  # at a greater probability, the same ones and more
    for other in (absent(seed=2), absent(split=1)):
        assert abs((once & other).mean() - 0.09) < 5 * np.sqrt(0.09 * 0.91 / 4000)
    neighbours = (once[:-1] & once[1:]).mean()
    assert abs(neighbours - 0.09) < 5 * np.sqrt(0.09 * 0.91 / 4000)


def test_exactly_the_fraction_attacks_drawn_at_random_and_more_of_them_include_the_fewer():
    assert not any(map(Conduct().drops_out, range(100)))  # everybody answers honestly by default
    assert not Conduct().attackers(100).any()
    for parties, fraction, count in ((1000, 0.1, 100), (7, 0.1, 1), (4, 0.1, 0), (5, 1.0, 5)):
        assert Conduct(hostile=fraction, seed=1).attackers(parties).sum() == count
    few, many = (Conduct(hostile=f, seed=1).attackers(1000) for f in (0.1, 0.3))
    assert not (few & ~many).any()
    assert 20 < np.flatnonzero(few).mean() / 1000 * 100 < 80
    assert (few != Conduct(hostile=0.1, seed=1, split=1).attackers(1000)).any()
    counts = sum(Conduct(hostile=0.25, seed=seed).attackers(8) for seed in range(800))
    assert np.abs(counts - 200).max() < 5 * np.sqrt(800 * 0.25 * 0.75)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_labels_of_attackers(classes):
    labels = np.arange(40) % classes
    attack = {kind: Conduct(hostile=1.0, kind=kind, seed=1).labels(labels, classes, 5) for kind in KINDS}
    np.testing.assert_array_equal(attack["flip"], (labels + 1) % classes)
    assert not attack["target"].any()
    for kind in ("malformed", "oversized"):
        np.testing.assert_array_equal(attack[kind], labels)
    assert set(attack["random"]) == set(range(classes))
    again, other = (Conduct(hostile=1.0, kind="random", seed=1).labels(labels, classes, party) for party in (5, 6))
    np.testing.assert_array_equal(attack["random"], again)
    assert (again != other).any()


def test_random_labels_are_uniform():
    conduct, zeros = Conduct(hostile=1.0, kind="random", seed=1), np.zeros(50, int)
    labels = np.concatenate([conduct.labels(zeros, 4, party) for party in range(80)])
    assert np.abs(np.bincount(labels, minlength=4) - 1000).max() < 5 * np.sqrt(4000 * 0.25 * 0.75)


REAL_CONDUCT = Field((3,), minimum=-2.0, maximum=5.0)


@pytest.mark.parametrize("levels", [2, 3, 4, 5, 10, 16, 17, 256, 257, 70_000])
def test_classes_out_of_range_survive_the_wire_where_they_can_be_written(levels):
    declared = Field((9,), levels=levels)
    honest = np.zeros((2, 9), dtype=declared.dtype)
    for kind in ("malformed", "oversized"):
        sent = Conduct(hostile=1.0, kind=kind).answers(declared, honest)
        fields = {"votes": declared}
        submission = Submission("votes", np.arange(2), {"votes": sent})
        received = decode_submission(encode_submission(submission, fields), fields).arrays["votes"]
        np.testing.assert_array_equal(received, sent)
        expressible = kind == "malformed" and levels not in (2, 4, 16, 256)
        assert declared.invalid(received).all() == expressible
        if not expressible:
            assert (received == levels - 1).all()


def test_numbers_out_of_form_and_the_largest_in_form():
    honest = np.zeros((2, 3))
    for kind in ("flip", "random", "target"):  # who trains on wrong labels sends what it has learned
        assert Conduct(hostile=1.0, kind=kind).answers(REAL_CONDUCT, honest) is honest
    malformed = Conduct(hostile=1.0, kind="malformed").answers(REAL_CONDUCT, honest)
    assert np.isnan(malformed).all()
    assert REAL_CONDUCT.invalid(malformed).all()
    oversized = Conduct(hostile=1.0, kind="oversized").answers(REAL_CONDUCT, honest)
    assert (oversized == 5.0).all()
    assert not REAL_CONDUCT.invalid(oversized).any()
    assert (Conduct(hostile=1.0, kind="oversized").answers(Field((3,)), honest) == np.finfo(float).max).all()


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_real_labels_stay_in_the_range(kind):
    labels = np.array([0.1, 0.2, 0.3, 1.9])
    found, again, other = (
        Conduct(hostile=1.0, kind=kind, seed=1).labels(labels, (0.1, 1.9), party) for party in (3, 3, 4)
    )
    assert found.dtype == np.float64
    assert ((found >= 0.1) & (found <= 1.9)).all()
    if kind == "flip":
        np.testing.assert_allclose(found, 2.0 - labels)
    elif kind == "target":
        assert found.tolist() == [0.1] * 4
    elif kind == "random":
        assert len(set(found)) == 4
        assert found.tolist() == again.tolist() != other.tolist()
    else:
        np.testing.assert_array_equal(found, labels)
