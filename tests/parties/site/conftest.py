"""A site with its aggregator, all keys, and a table of forty rows."""

import hashlib
import secrets
import time
from dataclasses import dataclass, replace

import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from federation.contract.guarantee import Adjacency, Unit
from federation.contract.reference import Reference
from federation.letters.agreement import Agreement, terms
from federation.letters.keys import fingerprint, new_site_key, public_text
from federation.letters.letters import Head, SealedAnswer, SignedQuestion
from federation.letters.packets import question_packet, read_reply
from parties.holdings.cohort import Cohort, Holdings
from parties.site.accounts import Account, Accounts, Allowances
from parties.site.journal import Journal
from parties.site.site import Site
from parties.site.worker import Means

ADDRESSED = ("plan", "exchange", "number", "site", "position", "closing", "reply_to")


class Forty:
    """Rows of which every other has the label 1."""

    def holdings(self, party):
        rows = np.random.default_rng(0).normal(size=(40, 2))
        return Holdings(party, rows, np.arange(40) % 2)

    def evaluation(self):
        return None


@dataclass
class Asker:
    """An aggregator with one exchange, that asks one site."""

    agreement: Agreement
    site: object
    signing: Ed25519PrivateKey
    reply_to: X25519PrivateKey
    exchange: bytes

    def head(self, packet, **changed):
        key = self.reply_to.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        site = bytes.fromhex(fingerprint(self.site))
        digest = hashlib.sha256(packet).digest()
        known = Head(self.agreement.digest, self.exchange, 0, digest, "north", 0, site, self.agreement.closing, key)
        return replace(known, **changed)

    def letter(self, question, **changed):
        packet = question_packet(question)
        return vars(SignedQuestion.signed(self.head(packet, **changed), packet, self.signing))

    def read(self, reply, question, **changed):
        packet = SealedAnswer(**reply).opened(self.head(question_packet(question), **changed), self.site, self.reply_to)
        return read_reply(packet, question)
