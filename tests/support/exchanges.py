"""A site and an aggregator that asks it, with all keys and an agreement, for tests; rows by reference."""

import hashlib
import json
import os
import secrets
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Unit
from federation.contract.plugins import Reference
from federation.signed_messages.agreement import Agreement, terms
from federation.signed_messages.keys import fingerprint, new_site_key, public_text, raw_public
from federation.signed_messages.messages import (
    NOTHING_KNOWN,
    Head,
    SealedAnswer,
    SignedQuestion,
    question_packet,
    read_reply,
)
from parties.party_data.cohort import Cohort, Holdings
from parties.site.accounts import Account, Accounts, Allowances, Journal
from parties.site.messages import Site
from parties.site.worker import Means

LONGEST = 10_000  # bytes of a question, as agreed


class Forty:
    """Forty rows of which every other has the label 1; `spoilt` ones cannot be read, or end whoever reads them."""

    def __init__(self, spoilt: str = "") -> None:
        self._spoilt = spoilt

    def holdings(self, party: int) -> Holdings:
        rows = np.random.default_rng(0).normal(size=(40, 3))
        return (_Spoilt if self._spoilt else Holdings)(party, rows, np.arange(40) % 2)

    def evaluation(self) -> None:
        return None


class Unreadable(Forty):
    """Rows that nobody can read."""

    def holdings(self, party: int) -> Holdings:
        raise OSError("the rows cannot be read")


class Away(Forty):
    """Rows that are away as long as there is a file `mark`."""

    def __init__(self, mark: str) -> None:
        super().__init__()
        self._mark = Path(mark)

    def holdings(self, party: int) -> Holdings:
        if self._mark.exists():
            raise OSError("the connection was lost")
        return super().holdings(party)

    def require_there(self) -> None:
        if self._mark.exists():
            raise InputError("the data base says: connection refused")


class Rows:
    """A site's table in memory, that may change, for its service."""

    reference = Reference(f"{__name__}:Forty").to_json()

    def __init__(self) -> None:
        self.holdings: Holdings | None = Holdings(0, np.eye(3), np.zeros(3))
        self.told, self.number = ["a remark"], 0

    def change(self, holdings: Holdings | None, *told: str) -> None:
        self.holdings, self.told, self.number = holdings, [*told], self.number + 1

    def version(self) -> int:
        return self.number

    def read(self) -> tuple[Holdings | None, list[str]]:
        return self.holdings, self.told


@dataclass(frozen=True, repr=False)
class _Spoilt(Holdings):
    """Rows that end the process of whoever looks at their labels."""

    def class_codes(self, classes: int) -> np.ndarray:
        self._end()
        return super().class_codes(classes)

    def numbers(self) -> np.ndarray:
        self._end()
        return super().numbers()

    def _end(self) -> None:
        if self.labels.any():  # blank ones can be read
            os.kill(os.getpid(), signal.SIGKILL)


def agreement_for(signing, keys, *questions, closing=3600.0, **changed):
    """What `north`, and others, agreed to be asked: these questions, and none else."""
    names = ["north", "south", "west", "east"]
    promise = {"unit": "label", "adjacency": "replace", "epsilon": 1.0, "delta": 0.0}
    known = {
        "version": 1,
        "name": "trial",
        "aggregator": public_text(signing.public_key()),
        "superlink": "127.0.0.1:1",
        "root": "none",
        "sites": [{"name": name, "key": public_text(key)} for name, key in zip(names, keys, strict=False)],
        "closing": int(time.time() + closing),
        "columns": [{"name": name} for name in "pqr"],
        "label": {"name": "ill", "classes": ["no", "yes"]},
        "missing": False,
        "rows": [1, 100],
        "public": {"file": "public.csv", "sha256": "0" * 64, "rows": 10},
        "quorum": 0.5,
        "colluding": 0.1,
        "protocol": "class_ratio",
        "options": {},
        "asked": [
            {"kind": one.kind, "times": 1, "same": terms(one), "length": LONGEST, "reply": 10_000} for one in questions
        ],
        "promises": [{**promise, "trusted": False}, {**promise, "unit": "party", "trusted": True}],
    }
    return Agreement.model_validate_json(json.dumps(known | changed))


@dataclass
class Asker:
    """An aggregator with one exchange, that asks one site."""

    agreement: Agreement
    site: object
    signing: Ed25519PrivateKey
    reply_to: X25519PrivateKey
    exchange: bytes

    def head(self, packet, **changed):
        site, digest = bytes.fromhex(fingerprint(self.site)), hashlib.sha256(packet).digest()
        plan, closing = self.agreement.digest, self.agreement.closing
        known = Head(plan, self.exchange, 0, digest, "north", 0, site, closing, raw_public(self.reply_to))
        return replace(known, **changed)

    def letter(self, question, packet=None, known=NOTHING_KNOWN, **changed):
        packet = packet or question_packet(question)
        return vars(SignedQuestion.signed(self.head(packet, **changed), packet, self.signing, known))

    def read(self, reply, asked, **changed):
        """The status and the records of a reply to a question."""
        head = self.head(question_packet(asked), **changed)
        return read_reply(SealedAnswer(**reply).opened(head, self.site, self.reply_to))


@dataclass
class Pair:
    """A site in a folder of its own, and whoever asks it."""

    site: Site
    asker: Asker

    @property
    def events(self):
        """What its journal tells, in order."""
        return [line["event"] for line in self.site.journal.lines]

    @property
    def reasons(self):
        """Why it refused."""
        return [line["why"] for line in self.site.journal.lines if line["event"] == "refused"]

    def said(self, question, number=0, by=None, **sent):
        """What the site says to a question, by another asker where one is given."""
        asker = by or self.asker
        reply = self.site.reply(asker.letter(question, number=number, **sent))
        return asker.read(reply, question, number=number)[0]

    def again(self):
        """The site as it is after it has ended, however that came about."""
        site, folder = self.site, self.site.answers.parent
        journal = Journal(folder / "journal.jsonl")
        accounts = Accounts(site.accounts.table, site.accounts.allowances, journal)
        return replace(self, site=replace(site, journal=journal, accounts=accounts))


def pair(folder, *questions, spoilt="", epsilon=1.0, means=None, **changed):
    """A site with rows of which one label may cost `epsilon`, and one answer without noise may leave."""
    key, signing = new_site_key(), Ed25519PrivateKey.generate()
    agreement = agreement_for(signing, [key.public_key()], *questions, **changed)
    (folder / "answers").mkdir()
    journal = Journal(folder / "journal.jsonl")
    allowances = Allowances(
        (Account(Unit.LABEL, Adjacency.REPLACE, epsilon, 0.0),),
        Account(Unit.PARTY, Adjacency.REPLACE, 1.0, 0.0),
        1,
    )
    rows = Reference(f"{__name__}:Forty", {"spoilt": spoilt} if spoilt else {})
    site = Site(
        "north",
        key,
        agreement,
        journal,
        folder / "answers",
        lambda head: True,
        Cohort(rows.to_json(), 0, 1, None),
        Accounts("patients", allowances, journal),
        means or Means(),
    )
    reply_to = X25519PrivateKey.generate()
    return Pair(site, Asker(agreement, key.public_key(), signing, reply_to, secrets.token_bytes(16)))
