"""Registry entries: what a run knows is filled in, and what it cannot know is asked.

The questions of SP 800-226: every part of its pyramid is asked about, and answers are of the run.
"""

import re
from dataclasses import replace

import pytest
import yaml
from support.refusals import refused

from aggregator.contract.protocol import Place, Sent
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, Keeper, NoGuarantee, Unit
from scenarios.reports.evidence import Evidence, Reality, Release, World
from scenarios.reports.registry_drafts import drafts, write_drafts

LOCAL = (Place.PARTY, (Sent("its sums", 9, True), Sent("its rows without labels", 90, False)))
TOTAL = {"unit": "label", "adjacency": "replace", "releases": 2, "others": 0, "epsilon": 3.0, "delta": 0.0}


def label(epsilon, delta=0.0):
    premise = Assumption("features are public", Check.DECLARED)
    return Guarantee(epsilon, delta, Unit.LABEL, Adjacency.REPLACE, "lattice", {"scale": 2.0}, (premise,))


def found(*guarantees, reality=Reality.DEPLOYED, shown=LOCAL, description="what it is"):
    releases = tuple(Release("main", one, 8, *shown) for one in guarantees)
    world = World("", releases, (TOTAL,), 7, 1000, 50, 0.5, 1)
    return Evidence("a run", description, "2026-01-02", "0.1.0", reality, "the file p.csv", (world,), "main")


def entry(known):
    return drafts(known)[0]


def todos(record, path=()):
    """Where questions are left."""
    if isinstance(record, dict):
        return [place for key, value in record.items() for place in todos(value, (*path, key))]
    if isinstance(record, list):
        return [place for number, value in enumerate(record) for place in todos(value, (*path, number))]
    return [".".join(map(str, path))] if isinstance(record, str) and record.startswith("TODO: ") else []


def test_what_one_release_promises_is_filled_in_and_what_was_not_recorded_is_asked():
    made = entry(found(label(1.0)))["deployment"]
    assert made["dp_variant"]["variant_name"] == "Pure DP"
    assert made["privacy_loss"]["privacy_unit"] == "the label of one row"
    assert "replace-one, bounded" in made["privacy_loss"]["privacy_unit_details"]
    assert made["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0}
    assert made["deployment_model"]["release_type"] == "One release"
    assert "local DP" in made["deployment_model"]["model_name_details"]
    public = made["dp_variant"]["unprotected_quantities"]
    assert "send without noise: its rows without labels" in public
    assert re.search(r"50.*p\.csv", public)
    assert re.search(r"epsilon.*3.*delta.*0", made["accounting"]["composition"])
    assert "lattice (scale 2.0)" in made["implementation"]["mechanisms"]
    assert made["basic"]["description"] == "what it is"
    made = entry(found(label(1.0), shown=(Place.AGGREGATOR, (Sent("its votes", 9, False),))))["deployment"]
    assert "its votes" not in made["dp_variant"]["unprotected_quantities"]
    assert "its votes" in made["deployment_model"]["actors"]
    made = entry(found(label(1.0), shown=(None, ())))["deployment"]
    assert made["deployment_model"]["model_name_details"].startswith("TODO: who adds the noise")


def test_what_nobody_told_is_asked(tmp_path):
    paths = write_drafts(tmp_path, found(label(1.0), description=""))
    record = yaml.safe_load(paths[0].read_text())
    assert {
        "url_slug", "deployment.basic.data_curators.0.data_curator_name", "deployment.basic.intended_use",
        "deployment.basic.description", "deployment.basic.publication_date", "deployment.basic.data_product_sector",
        "deployment.deployment_model.data_source_type", "deployment.implementation.justification",
        "deployment.administrative.registry_authors.0",
    } <= set(todos(record))  # fmt: skip
    assert not [place for place in todos(record) if "dp_variant" in place or "privacy_loss" in place]
    assert (record, yaml.safe_load(paths[1].read_text())) == drafts(found(label(1.0), description=""))


def test_which_of_several_releases_was_published_is_not_made_up():
    made = entry(found(label(3.0, 1e-6), label(1.0, 1e-5)))["deployment"]
    known = made["privacy_loss"]["privacy_parameters"]
    assert known["epsilon"] == "TODO: which of 1, 3 was published?"
    assert known["delta"] == "TODO: which of 1e-06, 1e-05 was published?"
    assert made["dp_variant"]["variant_name"] == "Approximate DP"
    assert made["deployment_model"]["release_type"].startswith("TODO: ")
    one = entry(found(label(3.0, 1e-6)))["deployment"]["privacy_loss"]["privacy_parameters"]
    assert one == {"epsilon": 3.0, "delta": 1e-6}


@pytest.mark.parametrize("reality", Reality)
def test_a_simulation_is_not_to_be_submitted(reality):
    made = entry(found(label(1.0), reality=reality))
    notes = made["deployment"]["administrative"]["notes"]
    assert ("Do not submit" in notes) is (reality is not Reality.DEPLOYED)
    assert "- features are public." in notes
    assert made["status"] == "Draft"


def test_nothing_is_drafted_without_a_guarantee(tmp_path):
    nothing = replace(found(NoGuarantee("noise is off")), leading=None)
    for folder, known in ((tmp_path, nothing), (tmp_path / "none", found(label(1.0)))):
        refused(None, write_drafts, folder, known)
        assert list(tmp_path.iterdir()) == []


def test_lines_are_written_as_blocks_that_the_registry_takes_and_texts_of_a_run_as_texts(tmp_path):
    text = write_drafts(tmp_path, found(label(1.0)))[0].read_text()
    styles = {token.style for token in yaml.scan(text) if isinstance(token, yaml.ScalarToken)}
    assert styles == {None, "'", "|"}
    assert "    actors: |-\n" in text
    hostile = "a: [b]\n- {{ 7 * 7 }} \"'# <b>"
    made = entry(replace(found(label(1.0), description=hostile), name=hostile))
    assert made["deployment"]["basic"]["name"] == made["deployment"]["basic"]["description"] == hostile


PREMISES = (
    Assumption("rows are cut", Check.ENFORCED),
    Assumption("the law is the formula's", Check.DECLARED, Keeper.SOFTWARE),
    Assumption("features are public", Check.DECLARED, Keeper.HOLDER),
)


def questions(unit=Unit.PARTY):
    """The questions about a simulated run, with their answers."""
    promised = Guarantee(1.0, 1e-6, unit, Adjacency.REPLACE, "gaussian", {"scale": 2.5}, PREMISES)
    shown = (Place.AGGREGATOR, (Sent("its votes", 9, False),))
    return drafts(found(promised, reality=Reality.SIMULATION, shown=shown))[1]


def test_every_part_of_the_pyramid_is_asked_about_and_answers_are_those_of_the_run():
    asked = questions()
    assert list(dict.fromkeys(one["about"] for one in asked)) == [
        "reality", "epsilon", "unit of privacy", "algorithm", "utility and bias", "trust model", "implementation",
        "security", "data collection",
    ]  # fmt: skip
    told = " ".join(one["answer"] for one in asked)
    for part in (
        "SIMULATION", "epsilon 1, delta 1e-06.", "epsilon 3, delta 0 for the label of one row",
        "gaussian (scale 2.5)", "by the code: rows are cut.", "Taken for granted: the law is the formula's.",
        "50 rows without labels",
    ):  # fmt: skip
        assert part in told
    for one in asked:
        assert "TODO" not in one["answer"] or one["answer"].rstrip().endswith("?")


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        (Unit.PARTY, "at several parties?"), (Unit.PERSON, "the same at all parties?"),
        (Unit.ROW, "One row:"), (Unit.LABEL, "One label:"),
    ],
)  # fmt: skip
def test_whether_a_whole_person_is_protected_follows_from_the_unit(unit, said):
    [_, person] = [one for one in questions(unit) if one["about"] == "unit of privacy"]
    assert said in person["answer"]
