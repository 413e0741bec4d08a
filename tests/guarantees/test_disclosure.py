"""Every text says who has, sees and is trusted with what, for every place of the noise and number of servers.

The table below is written by hand. A text may neither omit one of its facts nor state one that does not hold.
"""

from pathlib import Path

import pytest
from support.html_page import Page
from support.letter_sites import CLOSING, scenario, write_public
from support.site_folders import site_folder

from aggregator.advice import Wish, rank
from aggregator.contract.disclosure import (
    ADDED_BY,
    MODELS,
    Fact,
    Protection,
    Relation,
    Role,
    Statement,
    disclosed,
    protection,
    responsible,
)
from aggregator.contract.protocol import Place, Sent, Trust
from federation.contract.guarantee import Adjacency, Guarantee, Keeper, Unit
from federation.contract.trust import Servers, TrustTerms
from parties.site.settings import Settings
from scenarios.advice import texts as advice
from scenarios.deployment.folder import make_folder
from scenarios.deployment.site_texts import outlook
from scenarios.reports.evidence import Evidence, Reality, Release, World
from scenarios.reports.guarantee_page import GUARANTEE, template, view
from scenarios.reports.registry_drafts import drafts
from scenarios.settings.guarantees import in_lines, promises, roles, told_once
from scenarios.settings.schema import resolve

Told = set[tuple[Role, Relation, Statement]]

HAS, SEES, TRUSTED = Relation.HAS, Relation.SEES, Relation.TRUSTED
SENT = (Sent("its noisy sums", 9, private=True), Sent("its public rows", 90, private=False))
EXACT = tuple(Sent(one.what, one.numbers, private=False) for one in SENT)


def of_role(role: Role, has: str = "", sees: str = "", trusted: str = "") -> Told:
    """What a role has, sees and is trusted with, by the names of statements."""
    named = ((HAS, has), (SEES, sees), (TRUSTED, trusted))
    return {(role, relation, Statement[name]) for relation, names in named for name in names.split()}


ALWAYS = of_role(Role.PARTY, "OWN_ROWS", "OWN_VIEW", "OWN_DATA")
ALWAYS |= of_role(Role.EVERYBODY, "MODEL", "NO_PARTY", "NOTHING")
CENTRAL = ALWAYS | of_role(Role.AGGREGATOR, "RESPONSES_BEFORE_NOISE", "EXACT", "ADDING_NOISE")
LOCAL = (
    ALWAYS
    | of_role(Role.PARTY, trusted="OWN_NOISE")
    | of_role(Role.AGGREGATOR, "RESPONSES", "NOISY EXACT", "NOTHING_PROTECTED")
    | of_role(Role.EVERYBODY, sees="DECLARED_PUBLIC")
)
NON_PRIVATE = ALWAYS | of_role(Role.AGGREGATOR, "RESPONSES", "EXACT", "EVERYTHING")
SUMMED = (
    ALWAYS
    | of_role(Role.PARTY, trusted="NOISE_SHARE")
    | of_role(Role.AGGREGATOR, "MASKED_RESPONSES", "ONLY_SUM EXACT", "NO_COLLUSION")
    | of_role(Role.COORDINATOR, trusted="KEY_LIST")
    | of_role(Role.EVERYBODY, sees="DECLARED_PUBLIC")
)
SEMI_HONEST = SUMMED | of_role(Role.AGGREGATOR, trusted="FOLLOWING")
ONE_SERVER = (
    SUMMED
    | of_role(Role.AGGREGATOR, sees="NO_SINGLE_RESPONSE")
    | of_role(Role.ADMINISTRATOR, trusted="COMPARING_DIGEST")
)
TWO_SERVERS = (
    ONE_SERVER
    | of_role(Role.AGGREGATOR, trusted="NOT_WITH_HELPER")
    | of_role(Role.HELPER, "MASK_KEYS", "WHO_RESPONDS", "ONLY_MASKS NO_COLLUSION COMPARING_DIGEST")
    | of_role(Role.ADMINISTRATOR, trusted="COMPARING_MASKS")
)
TABLE: dict[tuple[Place, Servers], Told] = {
    (Place.AGGREGATOR, "one"): CENTRAL,
    (Place.PARTY, "one"): LOCAL,
    (Place.SHARES, "one"): ONE_SERVER,
    (Place.SHARES, "one_semi_honest"): SEMI_HONEST,
    (Place.SHARES, "two"): TWO_SERVERS,
    (Place.NOWHERE, "one"): NON_PRIVATE,
}
PRIVATE = [case for case in TABLE if case[0] is not Place.NOWHERE]  # sites answer under a guarantee only
OPTIONS = {
    Place.AGGREGATOR: {"kind": "soft_vote"},
    Place.PARTY: {"kind": "mean_operator"},
    Place.SHARES: {"kind": "mean_operator", "trust": "secure"},
    Place.NOWHERE: {"kind": "mean_operator", "noise": "off"},
}


def key(fact: Fact) -> tuple[Role, Relation, Statement]:
    return fact.role, fact.relation, fact.statement


def require(text: str, case: tuple[Place, Servers], facts: tuple[Fact, ...]) -> None:
    """Every fact is in the text, and nothing that does not hold is."""
    assert {key(fact) for fact in facts} == TABLE[case]
    plain = " ".join(text.split())
    for fact in facts:
        assert str(fact) in plain
    stated = {fact.statement for fact in facts}
    for other in set(Statement) - stated:
        assert str(other).partition("{sent}")[0].rstrip() not in plain


@pytest.mark.parametrize("case", TABLE, ids=str)
def test_the_facts_are_those_of_the_table(case):
    place, servers = case
    sent = EXACT if place in (Place.AGGREGATOR, Place.NOWHERE) else SENT
    facts = disclosed(place, servers, sent)
    assert len({key(fact) for fact in facts}) == len(facts)
    assert {key(fact) for fact in facts} == TABLE[case]
    for fact in facts:
        assert bool(fact.sent) is ("{sent}" in fact.statement)


@pytest.mark.parametrize("place", Place)
def test_servers_matter_in_secure_aggregation_only(place):
    found = [disclosed(place, servers, SENT) for servers in ("one", "one_semi_honest", "two")]
    assert len(set(found)) == (3 if place is Place.SHARES else 1)


def test_nothing_is_made_up_about_a_place_that_was_not_recorded():
    facts = disclosed(None, "one", ())
    assert {key(fact) for fact in facts} - ALWAYS == {
        (Role.AGGREGATOR, relation, Statement.UNKNOWN) for relation in Relation
    }


@pytest.mark.parametrize("case", TABLE, ids=str)
def test_the_terminal(case):
    place, servers = case
    known = {"data": {"source": "breast_cancer", "auxiliary": 60}, "parties": {"count": 4}, "privacy": {"epsilon": 1}}
    found = promises(resolve({**known, "protocols": [OPTIONS[place]], "servers": servers}))
    sent = sent_of(place)
    require("\n".join(told_once(found)), case, disclosed(place, servers, sent))
    assert all(one.what in found[0]["sends"] for one in sent)
    assert ADDED_BY[place] in found[0]["promise"]
    assert MODELS[place] in found[0]["promise"]


def sent_of(place: Place) -> tuple[Sent, ...]:
    """What the protocol of `OPTIONS` sends."""
    from aggregator.contract.registry import protocol
    from aggregator.trial.plan import PublicNumbers

    options = dict(OPTIONS[place])
    return protocol(options.pop("kind"))(**options).promised(PublicNumbers(1e-6), 1.0).sends


@pytest.mark.parametrize("case", [case for case in PRIVATE if case[1] == "one"], ids=str)
def test_advice_which_knows_of_one_server(case):
    place, servers = case
    trust = {Place.AGGREGATOR: Trust.AGGREGATOR, Place.PARTY: Trust.NONE, Place.SHARES: Trust.SECURE}[place]
    protect = "party" if place is Place.AGGREGATOR else "label"
    wish = Wish("binary", protect, trust, rows=900, features=5, terms=TrustTerms(9), public_rows=100)
    found = rank(wish)
    [first, *_] = [one for one in found.ranked if one.place is place]
    facts = disclosed(place, servers, first.promise.sends)
    alone = type(found)((first,), ())
    require("\n".join(advice.chosen(alone, wish)), case, facts)
    assert advice.record(first, wish)["roles"] == roles(facts)
    assert advice.rows(alone, wish)[0]["added by"] == ADDED_BY[place]


def evidence(place: Place, servers: Servers, sent: tuple[Sent, ...]) -> Evidence:
    guarantee = Guarantee(1.0, 0.0, Unit.LABEL, Adjacency.REPLACE, "noise")
    release = Release("main", guarantee, 8, place, sent)
    world = World("", (release,), (), 7, 1000, 50, 0.5, 1, servers)
    return Evidence("a run", "", "2026-01-02", "0.1.0", Reality.DEPLOYED, "", (world,), "main")


@pytest.mark.parametrize("case", TABLE, ids=str)
def test_the_data_protection_summary_and_the_drafts(case):
    place, servers = case
    sent = EXACT if place in (Place.AGGREGATOR, Place.NOWHERE) else SENT
    facts = disclosed(place, servers, sent)
    found = evidence(place, servers, sent)
    shown = view(found)
    page = Page(template(GUARANTEE).render(**shown)).text
    require(page, case, facts)
    for row, role in zip(shown["roles"], [role for role in Role if role in {fact.role for fact in facts}], strict=True):
        for column, relation in (("has", HAS), ("sees", SEES), ("trusted", TRUSTED)):
            own = [str(fact) for fact in facts if (fact.role, fact.relation) == (role, relation)]
            assert row[column][: len(own)] == own
    assert [one["hidden"] for one in shown["sends"]] == [protection(place, one.private) for one in sent]
    entry, questions = drafts(found)
    require(entry["deployment"]["deployment_model"]["actors"], case, facts)
    require(next(one["answer"] for one in questions if one["about"] == "trust model"), case, facts)
    assert MODELS[place] in entry["deployment"]["deployment_model"]["model_name_details"]


@pytest.mark.parametrize("case", PRIVATE, ids=str)
def test_the_page_of_a_deployment_and_that_of_a_site(case, tmp_path: Path):
    place, servers = case
    options = dict(OPTIONS[place])
    document = scenario(options.pop("kind"), options, parties={"quorum": 1.0}, servers=servers)
    known = {"superlink": "link.org:9", "sites": ("north", "south", "west"), "closing": CLOSING, "rows": (60, 67)}
    known |= {"bags": None, "second": "ombud" if servers == "two" else None}
    public = write_public(tmp_path / "public.csv")
    folder, deployment = make_folder(tmp_path / "D", resolve(document), public, known, ["link.org"])
    plan = deployment.agreement
    private = {"statistic": False, "mean_operator": True, "rows": False}
    sent = tuple(Sent(f"the response to '{one.kind}'", None, private[one.kind]) for one in plan.asked)
    facts = disclosed(place, servers, sent)
    readme = (folder.path / "README.txt").read_text()
    require(readme, case, facts)
    settings = Settings.load(site_folder(tmp_path / "site"))
    found = outlook(settings, plan)
    require("\n".join(found.lines), case, facts)
    helper = {Role.HELPER: "the helper server 'ombud'"}
    for line in in_lines(roles(facts, helper)):
        assert line in found.lines
        assert line in readme
    for one, what in zip(plan.asked, sent, strict=True):
        [line] = [line for line in found.lines if line.startswith(f"  {one.kind}, ")]
        assert protection(place, what.private) in line


def test_what_protects_a_thing_that_leaves_a_party():
    table = {
        (Place.AGGREGATOR, False): Protection.AGGREGATOR,
        (Place.PARTY, True): Protection.PARTY,
        (Place.PARTY, False): Protection.PUBLIC,
        (Place.SHARES, True): Protection.SHARES,
        (Place.SHARES, False): Protection.PUBLIC,
        (Place.NOWHERE, False): Protection.NOTHING,
    }
    assert {(place, private): protection(place, private) for place, private in table} == table
    keepers = {place: responsible(place) for place in Place}
    assert keepers[Place.PARTY] is keepers[Place.SHARES] is Keeper.SITE
    assert keepers[Place.AGGREGATOR] is keepers[Place.NOWHERE] is Keeper.COORDINATOR
