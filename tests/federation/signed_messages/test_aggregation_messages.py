"""Queries and answers of secure sums as letters, and the one plan that follows from an agreement."""

from dataclasses import replace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.exchanges import agreement_for
from support.refusals import refused
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
    sites = [key.public_key() for key in keys]
    known = agreement_for(Ed25519PrivateKey.generate(), sites, QUESTION, quorum=quorum, colluding=colluding)
    texts = [public_text(sums_key(key).public_key()) for key in keys]
    members = tuple(site.model_copy(update={"sums": text}) for site, text in zip(known.sites, texts, strict=True))
    return known.model_copy(update={"sites": members}) if sums else known


@pytest.mark.parametrize("sites", [3, 5, 40, 400])
def test_no_query_is_longer_than_sites_read(keys, sites):
    """Each with as much of all neighbours as its plan allows."""
    known = agreement(keys)
    [asked] = known.asked
    masked = asked.model_copy(update={"masked": True, "length": len(PACKET)})
    members = tuple(Member(name=f"s{number}") for number in range(sites))
    agreed = known.model_copy(update={"sites": members, "asked": (masked,)})
    plan = planned("00" * 32, Roster((bytes(KEY),) * sites), 2**27, TrustTerms(sites, 1.0), 0.0)
    cells = {SHARES: keys_width(plan), MASKED: LETTER, AGREE: receipt_width(plan), UNMASK: SIGNATURE}
    bodies = {query: bytes(plan.neighbours * (4 + width) + sites) for query, width in cells.items()}
    lengths = [len(SumQuery(query, plan.digest, body).packet()) for query, body in bodies.items()]
    first = len(SumQuery(KEYS, plan.digest, plan.packed(), PACKET).packet())
    assert max(first, *lengths) <= agreed.longest_question == len(PACKET) + 1024 * sites


@pytest.mark.parametrize("number", [KEYS, UNMASK, LEAVE])
def test_queries_and_answers_come_back_from_their_packets(number):
    assert len({KEYS, SHARES, MASKED, AGREE, UNMASK, LEAVE}) == 6
    query = SumQuery(number, bytes(range(32)), b"body", b"question")
    assert SumQuery.read(query.packet()) == query
    status, records = read_reply(SumAnswer(b"body", b"opened").packet())
    assert status is Status.ANSWER
    assert SumAnswer.read(records) == SumAnswer(b"body", b"opened")
    assert records_packet(SumAnswer(b"a").records()) == records_packet(SumAnswer(b"a").records())


@pytest.mark.parametrize(
    ("read", "sent"),
    [
        *(
            (SumQuery.read, SumQuery(*parts).packet())
            for parts in (
                (MASKS + 1, bytes(32), b""),
                (-1, bytes(32), b""),
                (0, bytes(31), b""),
                ("0", bytes(32), b""),
                (0, bytes(32), 1.5),
            )
        ),
        (SumQuery.read, packet_of(SUM, SumAnswer(b"").records())),
        (SumQuery.read, b"secure_sum\nnonsense"),
        (SumAnswer.read, SumQuery(0, bytes(32), b"").records()),
        (SumAnswer.read, SumAnswer(b"", 1).records()),
    ],
)
def test_what_is_no_query_or_answer_is_refused(read, sent):
    with pytest.raises(InputError):
        read(sent)


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
    refused("question", require_planned, first, known, roster, PACKET + b" ", 5)
    refused("numbers", require_planned, first, known, roster, PACKET, 6)
    for changed in ({"least": 3}, {"contributors": 2}, {"threshold": 2}, {"adversary": "semi_honest"}):
        refused(f"'{next(iter(changed))}'", require_planned, replace(first, **changed), known, roster, PACKET, 5)


@pytest.mark.parametrize(
    ("sites", "quorum", "colluding", "least", "contributors", "neighbours"),
    [
        (4, 0.75, 0.25, 3, 2, 3),  # a lower quorum counts on fewer shares
        (50, 0.5, 0.1, 25, 20, 49),  # 25 that are away would leave too few neighbours to unmask: no absences
        (1000, 0.9, 0.1, 900, 800, neighbourhood(1000, 100, 100, "active").neighbours),  # as the quorum says
    ],
)
def test_as_many_may_stay_away_as_the_quorum_and_the_neighbours_allow(
    keys, sites, quorum, colluding, least, contributors, neighbours
):
    known = agreement(keys, quorum=quorum, colluding=colluding)
    many = replace(roster_of(known), keys=tuple(number.to_bytes(32, "big") for number in range(sites)))
    plan = sum_plan(known.model_copy(update={"sites": known.sites[:1] * sites}), many, PACKET, 5)
    assert (plan.least, plan.contributors, plan.neighbours) == (least, contributors, neighbours)
    assert plan.neighbours < 999
    assert sites != 50 or plan.threshold == 28
    assert SumPlan.read(plan.packed()) == plan
