"""The questions of SP 800-226: every part of its pyramid is asked about, and answers are of the run."""

import pytest
import yaml

from aggregator.contract.protocol import Place, Sent
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, Keeper, Unit
from scenarios.reports.evidence import Evidence, Reality, Release, World
from scenarios.reports.registry_drafts import evaluation, write_evaluation

PREMISES = (
    Assumption("rows are cut", Check.ENFORCED),
    Assumption("the law is the formula's", Check.DECLARED, Keeper.SOFTWARE),
    Assumption("features are public", Check.DECLARED, Keeper.HOLDER),
)
TOTAL = {"unit": "party", "adjacency": "replace", "releases": 2, "others": 0, "epsilon": 3.0, "delta": 1e-6}


def found(unit=Unit.PARTY, place=Place.AGGREGATOR, reality=Reality.SIMULATION, leading="main"):
    promised = Guarantee(1.0, 1e-6, unit, Adjacency.REPLACE, "gaussian", {"scale": 2.5}, PREMISES)
    release = Release("main", promised, 8, place, (Sent("its votes", 9, place is Place.PARTY),))
    world = World("", (release,), (TOTAL,), 7, 1000, 50, 0.5, 1)
    return Evidence("a run", "", "2026-01-02", "0.1.0", reality, "", (world,), leading)


def test_every_part_of_the_pyramid_is_asked_about():
    parts = list(dict.fromkeys(one.about for one in evaluation(found())))
    assert parts == [
        "reality", "epsilon", "unit of privacy", "algorithm", "utility and bias", "trust model", "implementation",
        "security", "data collection",
    ]  # fmt: skip


def test_answers_are_those_of_the_run():
    told = " ".join(one.answer for one in evaluation(found()))
    for part in (
        "SIMULATION", "epsilon 1, delta 1e-06.", "epsilon 3, delta 1e-06 for everything that one party holds",
        "gaussian, with scale 2.5", "Noise is made by the coordinator", "by the code: rows are cut.",
        "Taken for granted: the law is the formula's.", "50 rows without labels",
    ):  # fmt: skip
        assert part in told
    for one in evaluation(found()):
        assert "TODO" not in one.answer or one.answer.rstrip().endswith("?")


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        (Unit.PARTY, "at several parties?"), (Unit.PERSON, "the same at all parties?"),
        (Unit.ROW, "One row is"), (Unit.LABEL, "One label is"),
    ],
)  # fmt: skip
def test_whether_a_whole_person_is_hidden_follows_from_the_unit(unit, said):
    [_, person] = [one for one in evaluation(found(unit)) if one.about == "unit of privacy"]
    assert said in person.answer


@pytest.mark.parametrize(("place", "asked"), [(Place.AGGREGATOR, True), (Place.PARTY, False)])
def test_answers_before_the_noise_are_guarded_where_there_are_some(place, asked):
    [access] = [one for one in evaluation(found(place=place)) if one.about == "security"]
    assert ("Answers before the noise" in access.answer) is asked


def test_they_are_written_as_yaml(tmp_path):
    record = yaml.safe_load(write_evaluation(tmp_path, found()).read_text())
    assert [one["question"] for one in record] == [one.question for one in evaluation(found())]
    with pytest.raises(InputError, match="nothing to evaluate"):
        write_evaluation(tmp_path, found(leading=None))
