"""What a coordinator asks the second of two servers: the sum of the masks of one list of sites, once.

What sites have sent, and who is counted, is on the disk by then: a second server that is away is asked again later, for
the same list and in the same letter, and no site is asked for anything once more.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from flwr.app import Message

from aggregator.exchange.letter_grid import LetterGrid
from aggregator.sums.adding import AddingServer
from federation.contract.errors import InputError, QuorumError
from federation.secure_aggregation.masks import Words
from federation.signed_messages.aggregation_messages import MASKS, SUM, SumAnswer, SumQuery
from federation.signed_messages.agreement import Agreement


def sum_message(letters: LetterGrid, query: SumQuery, member: int) -> Message:
    """A query of a secure sum to a member of the agreement, by its number."""
    return letters.create_message(query.records(), f"query.{SUM}", member + 1, "")


def unmasked(letters: LetterGrid, server: AddingServer, agreement: Agreement) -> Words:
    """The sum of the masks of all who are counted.

    Raises `QuorumError` where it does not come, and can be asked for again, and `InputError` for one of another size.
    """
    plan = server.plan
    asked = SumQuery(MASKS, plan.digest, server.counted() + b"".join(server.receipts()), plan.packed())
    names = [*letters.push_messages([sum_message(letters, asked, plan.parties)])]
    reply = None
    while reply is None:
        reply = next(iter(letters.pull_messages(names)), None)
    name = agreement.members[plan.parties].name
    if reply.has_error():
        raise QuorumError(
            f"the second server '{name}' has not told the sum of the masks ({_SAID.get(reply.error.reason, _AWAY)}); "
            "what the sites have sent is kept, and they are not asked again: collect again once it is there"
        )
    masks = b""
    with suppress(InputError):  # told below, by name
        masks = SumAnswer.read(reply.content).body
    if len(masks) != 8 * plan.numbers:
        raise InputError(
            f"the second server '{name}' has told no sum of masks of {plan.numbers} numbers, and tells it "
            "once; ask it why, and then begin a new exchange: federation collect DIR --new-exchange"
        )
    return np.frombuffer(masks, dtype="<u8")


_AWAY = "it did not answer in time"
_SAID = {"the site refused": "it refused; its own log says why", "the exchange has closed": "the exchange has closed"}
