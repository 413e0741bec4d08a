"""The guarantee page: who sees what, in what odds, on whose word, and whether any of it is real.

Templates of pages.
"""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import TemplateNotFound, UndefinedError
from support.finished_runs import edited
from support.html_page import Page
from support.refusals import refused

from aggregator.contract.protocol import Place, Sent, Trust
from aggregator.contract.registry import protocol, protocol_names
from aggregator.trial.plan import PublicNumbers
from federation.contract.guarantee import SEEDED, Adjacency, Assumption, Check, Guarantee, Keeper, NoGuarantee, Unit
from scenarios.reports.evidence import Evidence, Reality, Release, World
from scenarios.reports.guarantee_page import (
    GUARANTEE,
    declared_public,
    keepers,
    percent,
    template,
    view,
    who,
    write_guarantee,
)
from scenarios.scores.results import read_results

HOSTILE = "<script>alert(1)</script>\"'&{{7*7}}"

PREMISES = (
    Assumption("answers are cut", Check.ENFORCED),
    SEEDED,
    Assumption("the key is secret", Check.DECLARED, Keeper.NOISE_MAKER),
    Assumption("rows are of different people", Check.DECLARED, Keeper.HOLDER),
    Assumption("the law is the formula's", Check.DECLARED, Keeper.SOFTWARE),
    Assumption("no row is longer than 1", Check.CHECKED),
    Assumption("parties are enrolled once", Check.DECLARED),
)


def promised(epsilon=1.0, delta=0.0, unit=Unit.PARTY, adjacency=Adjacency.REPLACE):
    return Guarantee(epsilon, delta, unit, adjacency, "noise", {"entropy": "seed"}, PREMISES)


def world(shown, *guarantees, unit=Unit.PARTY, **changes):
    totals = ({"unit": str(unit), "adjacency": "replace", "releases": 2, "others": 1, "epsilon": 4.0, "delta": 1e-6},)
    known = World("", tuple(Release("main", one, 800, *shown) for one in guarantees), totals, 200, 1000, 430, 0.5, 2)
    return replace(known, **changes)


def found(reality, *worlds, leading="main"):
    return Evidence("a <run>", "", "2026-01-02", "0.1.0", reality, "the file p.csv", worlds, leading)


AGGREGATED = (Place.AGGREGATOR, (Sent("its votes", 430, False),))
LOCAL = (Place.PARTY, (Sent("its sums", 9, True), Sent("its rows without labels", 90, False)))
NOT_RECORDED = (None, ())
SHARED = (Place.SHARES, (Sent("a share of its sums", 9, True),))


def test_roles_are_those_of_the_release_with_the_public_numbers_of_the_trial():
    known = world(AGGREGATED, promised())
    first, aggregator, _ = who(known, known.releases[0])
    assert "200 parties" in first["who"]
    assert any("1,000 rows" in text for text in first["has"])
    assert any("its votes" in text for text in aggregator["sees"])
    two = world(SHARED, promised(), servers="two")
    assert len(who(two, two.releases[0])) == 6
    nothing = world(NOT_RECORDED, promised(), parties=None, private_rows=None)
    first, aggregator, _ = who(nothing, nothing.releases[0])  # what was not recorded is not made up
    assert first["who"] == "Each party"
    assert {tuple(aggregator[column]) for column in ("has", "sees", "trusted")} == {("not recorded",)}
    [party, *_] = who(world(LOCAL, parties=1), nothing.releases[0])
    assert party["who"] == "The party"


def test_noise_may_be_made_elsewhere_at_another_epsilon():
    """As where parties share one noise, and make a whole one each where that is fainter."""
    places = {1.0: Place.PARTY, 2.0: Place.SHARES}
    releases = [
        Release(name, promised(epsilon), 8, place) for name in ("main", "other") for epsilon, place in places.items()
    ]
    page = view(found(Reality.SIMULATION, replace(world(LOCAL), releases=tuple(releases))))
    assert [len(role["trusted"]) for role in page["roles"]] == [2, 1, 1]  # of noise that each party adds
    assert page["elsewhere"] == ["at ε = 2 by all parties in shares"]
    assert [line["noise_at"] for line in page["others"]] == ["each party, all parties in shares"]


@pytest.mark.parametrize("name", protocol_names())
def test_what_leaves_a_party_without_noise_is_public_or_for_a_trusted_aggregator(name):
    """The page says so of every protocol: where parties make the noise, only features may leave as they are."""
    chosen = protocol(name)()
    where, told = chosen.noise_at(Trust.AGGREGATOR), chosen.promise(PublicNumbers(1e-6), 1.0, Trust.AGGREGATOR)
    assert isinstance(where, Place)
    assert told.sends
    exact = [one for one in told.sends if not one.private]
    if where is Place.AGGREGATOR:
        assert exact == list(told.sends)
    elif exact:
        assert told.spends.unit in (Unit.LABEL, Unit.PERSON)


def test_what_is_public_is_counted():
    known = found(Reality.DEPLOYED)
    rows, quorum = declared_public(known, world(AGGREGATED), Unit.PARTY)
    assert re.search(r"430.*p\.csv", rows)
    assert "50% of them must answer" in quorum
    assert "the features of 1,000 rows of the parties" in list(declared_public(known, world(LOCAL), Unit.LABEL))[1]


@pytest.mark.parametrize(("place", "maker"), [(Place.AGGREGATOR, "coordinator"), (Place.PARTY, "site")])
def test_every_assumption_but_the_seed_has_one_keeper(place, maker):
    groups = keepers(promised(), place)
    numbered = {number: (group["who"], check) for group in groups for number, _, check in group["assumptions"]}
    assert sorted(numbered) == [1, 3, 4, 5, 6, 7]  # the seed is the banner
    assert maker in numbered[3][0]
    assert "officer" in numbered[4][0]
    assert [numbered[number][1] for number in (1, 5, 6)] == ["enforced", "taken for granted", "checked"]
    assert all("software" in numbered[number][0] for number in (1, 5, 6))
    assert "coordinator" in numbered[7][0]


@given(st.floats(0, 1))
def test_bounds_are_rounded_up(share):
    told = percent(share)
    if told != "over 99.9 %":
        assert share * 100 - 1e-6 <= float(told.removesuffix(" %")) < share * 100 + 0.1 + 1e-6
    else:
        assert share > 0.999


@pytest.mark.parametrize(
    ("reality", "title"), [*zip(Reality, ("SIMULATION", "SIMULATED PARTIES, REAL NOISE", "REAL"), strict=True)]
)
def test_the_banner_says_whether_it_is_real(reality, title):
    page = view(found(reality, world(AGGREGATED, promised())))
    assert page["title"] == title
    assert ("seed" in page["banner"]) is (reality is Reality.SIMULATION)


def test_the_odds_are_those_of_each_release_and_of_all_and_delta_is_told_for_as_many_units_as_there_are():
    page = view(found(Reality.SIMULATION, world(AGGREGATED, promised(1.0), promised(30.0))))
    assert [(level["right"], level["weak"]) for level in page["levels"]] == [("73.2 %", False), ("over 99.9 %", True)]
    assert page["levels"][0]["detections"] == ["2.8 %", "13.6 %"]
    assert "all data of one party" in page["example"][0]
    assert "73.2 of 100" in page["example"][0]
    [total] = page["totals"]
    assert (total["epsilon"], total["releases"], total["others"], total["right"]) == ("4", 2, 1, "98.3 %")
    labels = promised(1.0, 1e-3, Unit.LABEL, Adjacency.ADD_REMOVE)
    page = view(found(Reality.SIMULATION, world(LOCAL, labels)))
    assert "of 1,000 such units, for 1." in page["example"][1]
    assert "is added or removed" in page["example"][0]
    assert not any("suspicion" in line for line in page["example"])  # no bound on every single release
    persons = view(found(Reality.SIMULATION, world(LOCAL, replace(labels, unit=Unit.PERSON))))
    assert persons["example"][1].endswith("probability δ.")


def write(make_run, **changes):
    directory = make_run(**changes)
    path = write_guarantee(directory, read_results(directory / "results.csv"))
    assert path == directory / "guarantee.html"
    return path.read_text(encoding="utf-8")


DISCLOSED = {
    "swept": {}, "world": "w", "simulation": True, "parties": 30, "quorum": 0.5, "private_rows": 900,
    "public_rows": 100, "draws": 2,
    "variants": {
        "soft_vote": {"protocol": "soft_vote", "noise_at": ["aggregator"] * 3, "sends": [
            {"what": "one vote on every public row", "numbers": 100, "private": False}]},
    },
}  # fmt: skip


def test_the_page_is_complete_by_itself(make_run):
    source = write(make_run, disclosures=[DISCLOSED])
    page = Page(source)
    assert page.links == page.officers == []
    assert "url(" not in source
    assert {"header", "main", "footer"} <= set(page.tags)
    assert (page.tags.count("h1"), page.tags.count("script")) == (1, 0)
    for part in (
        "SIMULATION", "Guarantee of digits-vote", "Each of the 30 parties", "vote on every public row (100 numbers)",
        "For a release that is 1,352 bytes from each party.", "100 rows without labels", "all data of one party",
        "The other variants of this run", "soft_vote-gaussian", "A run computes every variant at every ε",
    ):  # fmt: skip
        assert part in page.text
    assert source == write(make_run, name="again", disclosures=[DISCLOSED])


def test_one_release_is_put_in_odds_once_and_damaged_artefacts_are_refused(make_run):
    directory = make_run()
    assert "is then right in at most" in write_guarantee(directory).read_text("utf-8")
    edited(directory / "ledger.json", lambda found: found["worlds"][0]["published_together"][0].update(releases=1))
    assert "is then right in at most" not in write_guarantee(directory).read_text("utf-8")
    edited(directory / "ledger.json", lambda found: found["worlds"][0].update(published_together=[{"unit": "party"}]))
    refused("KeyError", write_guarantee, directory, read_results(directory / "results.csv"))


def test_hostile_names_are_text_and_a_run_without_any_guarantee_says_so_first(make_run):
    page = Page(write(make_run, scenario="digits", text=HOSTILE))
    assert "script" not in page.tags
    assert HOSTILE in page.text
    page = Page(write(make_run, name="off", values={"soft_vote-off": (0.1, 0.2, 0.3)}))
    assert page.text.index("NO GUARANTEE") < page.text.index("For the data")
    assert "nobody: noise is off" in page.text
    nobody = view(found(Reality.DEPLOYED, world(AGGREGATED, NoGuarantee("off")), leading=None))
    assert "unit" not in nobody


def test_templates_are_compiled_once_and_escape_values_of_which_none_may_lack():
    assert template(GUARANTEE) is template(GUARANTEE)
    assert template(GUARANTEE).environment.from_string("{{ name }}").render(name="<b>") == "&lt;b&gt;"
    with pytest.raises(UndefinedError):
        template(GUARANTEE).render()
    with pytest.raises(TemplateNotFound):
        template("absent.html")
