"""Queries and answers of secure sums as letters, and the one plan that follows from an agreement."""

from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.exchanges import agreement_for
from support.two_class_questions import moment

from federation.contract.errors import InputError
from federation.contract.query import Submission
from federation.contract.trust import TrustTerms
from federation.secure_aggregation.masks import SIGNATURE
from federation.secure_aggregation.messages import (
    AGREE,
    KEYS,
    LETTER,
    MASKED,
    SHARES,
    UNMASK,
    keys_width,
    receipt_width,
)
from federation.secure_aggregation.plan import KEY, Roster, SumPlan, neighbourhood, planned
from federation.signed_messages.aggregation_messages import (
    LEAVE,
    MASKS,
    SUM,
    SumAnswer,
    SumQuery,
    open_length,
    part_length,
    part_packet,
    read_opened,
    read_part,
    require_planned,
    roster_of,
    sum_plan,
)
from federation.signed_messages.agreement import Member
from federation.signed_messages.keys import new_site_key, public_text, raw_public, sums_key
from federation.signed_messages.messages import (
    SHORTEST_REPLY,
    Status,
    packet_of,
    question_packet,
    read_reply,
    records_packet,
    status_packet,
)

QUESTION = moment("gaussian", contributors=2)
PACKET = question_packet(QUESTION)


@pytest.fixture(scope="module")
def keys():
    return [new_site_key() for _ in range(4)]


def agreement(keys, quorum=1.0, colluding=0.1, sums=True):
    known = agreement_for(
        Ed25519PrivateKey.generate(), [key.public_key() for key in keys], QUESTION, quorum=quorum, colluding=colluding
    )
    members = tuple(
        site.model_copy(update={"sums": public_text(sums_key(key).public_key())})
        for site, key in zip(known.sites, keys, strict=True)
    )
    return known.model_copy(update={"sites": members}) if sums else known


@pytest.mark.parametrize("sites", [3, 5, 40, 400])
def test_no_query_is_longer_than_sites_read(keys, sites):
    """Each with as much of all neighbours as its plan allows."""
    known = agreement(keys)
    [asked] = known.asked
    masked = asked.model_copy(update={"masked": True, "length": len(PACKET)})
    members = tuple(Member(name=f"s{number}") for number in range(sites))
    agreed = known.model_copy(update={"sites": members, "asked": (masked,)})
    plan = planned(
        "00" * 32, Roster((bytes(KEY),) * sites), 2**27, TrustTerms(len(Roster((bytes(KEY),) * sites)), 1.0), 0.0
    )
    cells = {SHARES: keys_width(plan), MASKED: LETTER, AGREE: receipt_width(plan), UNMASK: SIGNATURE}
    bodies = {query: bytes(plan.neighbours * (4 + width) + sites) for query, width in cells.items()}
    lengths = [len(SumQuery(query, plan.digest, body).packet()) for query, body in bodies.items()]
    first = len(SumQuery(KEYS, plan.digest, plan.packed(), PACKET).packet())
    assert max(first, *lengths) <= agreed.longest_question == len(PACKET) + 1024 * sites


def test_to_leave_is_no_query_of_a_sum():
    assert len({KEYS, SHARES, MASKED, AGREE, UNMASK, LEAVE}) == 6


@pytest.mark.parametrize("number", [KEYS, UNMASK, LEAVE])
def test_a_query_comes_back_from_its_packet(number):
    query = SumQuery(number, bytes(range(32)), b"body", b"question")
    assert SumQuery.read(query.packet()) == query


@pytest.mark.parametrize(
    "query",
    [
        SumQuery(MASKS + 1, bytes(32), b""),
        SumQuery(-1, bytes(32), b""),
        SumQuery(0, bytes(31), b""),
        SumQuery("0", bytes(32), b""),
        SumQuery(0, bytes(32), 1.5),
    ],
)
def test_what_is_no_query_is_refused(query):
    with pytest.raises(InputError):
        SumQuery.read(query.packet())


def test_other_records_are_no_query_and_no_answer():
    with pytest.raises(InputError):
        SumQuery.read(packet_of(SUM, SumAnswer(b"").records()))
    with pytest.raises(InputError):
        SumAnswer.read(SumQuery(0, bytes(32), b"").records())
    with pytest.raises(InputError):
        SumQuery.read(b"secure_sum\nnonsense")
    with pytest.raises(InputError):
        SumAnswer.read(SumAnswer(b"", 1).records())


def test_an_answer_comes_back_from_its_reply():
    status, records = read_reply(SumAnswer(b"body", b"opened").packet())
    assert status is Status.ANSWER
    assert SumAnswer.read(records) == SumAnswer(b"body", b"opened")


def test_a_part_is_what_is_said_openly_and_integers():
    step = QUESTION.mechanism().additive.step
    steps = np.arange(QUESTION.hidden_numbers) - 3
    sums = (steps * step).reshape(1, *QUESTION.fields()["sums"].shape)
    sent = Submission("mean_operator", np.array([1]), {"size": np.array([7.0]), "sums": sums})
    packet = part_packet(QUESTION, sent)
    assert len(packet) == part_length(QUESTION)
    opened, words = read_part(packet, len(steps))
    np.testing.assert_array_equal(words, steps)
    said = read_opened(opened, QUESTION)
    assert (said.parties.tolist(), said.arrays["size"].tolist(), [*said.arrays]) == ([1], [7.0], ["size"])
    assert len(opened) == open_length(QUESTION) > SHORTEST_REPLY
    with pytest.raises(InputError):
        read_opened(status_packet(Status.REFUSED, len(opened)), QUESTION)


def test_the_roster_has_the_sites_keys_in_their_order(keys):
    assert list(roster_of(agreement(keys)).keys) == [raw_public(sums_key(key)) for key in keys]
    with pytest.raises(InputError, match="north"):
        roster_of(agreement(keys, sums=False))


def test_a_plan_follows_from_the_agreement_but_for_its_nonce(keys):
    known = agreement(keys)
    roster = roster_of(known)
    first, second = (sum_plan(known, roster, PACKET, 5) for _ in range(2))
    assert first.nonce != second.nonce
    assert (first.parties, first.neighbours, first.threshold) == (4, 3, 3)
    assert (first.least, first.colluding, first.contributors, first.numbers) == (4, 1, 3, 5)
    for plan in (first, second):
        require_planned(plan, known, roster, PACKET, 5)
    with pytest.raises(InputError, match="question"):
        require_planned(first, known, roster, PACKET + b" ", 5)
    with pytest.raises(InputError, match="numbers"):
        require_planned(first, known, roster, PACKET, 6)
    for changed in ({"least": 3}, {"contributors": 2}, {"threshold": 2}, {"adversary": "semi_honest"}):
        with pytest.raises(InputError, match=f"'{next(iter(changed))}'"):
            require_planned(replace(first, **changed), known, roster, PACKET, 5)


def test_a_lower_quorum_counts_on_fewer_shares(keys):
    known = agreement(keys, quorum=0.75, colluding=0.25)
    plan = sum_plan(known, roster_of(known), PACKET, 5)
    assert (plan.least, plan.contributors) == (3, 2)
    assert SumPlan.read(plan.packed()) == plan


def test_fifty_sites_are_all_neighbours_and_plan_for_no_absences(keys):
    known = agreement(keys, quorum=0.5)  # 25 that are away would leave too few neighbours to unmask
    many = replace(roster_of(known), keys=tuple(number.to_bytes(32, "big") for number in range(50)))
    plan = sum_plan(known.model_copy(update={"sites": known.sites[:1] * 50}), many, PACKET, 5)
    assert (plan.neighbours, plan.threshold, plan.least) == (49, 28, 25)


def test_in_a_ring_as_many_may_stay_away_as_the_quorum_says(keys):
    known = agreement(keys, quorum=0.9)
    many = replace(roster_of(known), keys=tuple(number.to_bytes(32, "big") for number in range(1000)))
    sites = known.sites[:1] * 1000
    plan = sum_plan(known.model_copy(update={"sites": sites}), many, PACKET, 5)
    assert (plan.least, plan.contributors) == (900, 800)
    assert plan.neighbours == neighbourhood(1000, 100, 100, "active").neighbours < 999


def test_records_have_one_text():
    assert records_packet(SumAnswer(b"a").records()) == records_packet(SumAnswer(b"a").records())
