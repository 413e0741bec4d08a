"""The files of a site: its configuration, its plan, and what it keeps; read as `federation party check` reads them."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ec import SECP384R1, derive_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from benchmarks.fuzz.inputs import Input, Target
from benchmarks.fuzz.mutation import Mutation
from federation.contract.query import ReleaseId
from federation.queries.bags import Bags, CountsNoise, CountsQuestion
from federation.secure_aggregation.masks import signature
from federation.secure_aggregation.messages import RECEIPT, SAYS, Table, as_cells, packed_bits
from federation.signed_messages.aggregation_messages import MASKS, SumQuery, roster_of, sum_plan
from federation.signed_messages.agreement import Agreement, terms
from federation.signed_messages.keys import fingerprint, masks_key, public_text, raw_public, save_key, sums_key
from federation.signed_messages.messages import NOTHING_KNOWN, Head, SignedQuestion
from parties.helper_server import SecondServer
from parties.site.accounts import Journal, said
from parties.site.policy import APPROVED, Decision
from parties.site.service import cohort
from parties.site.settings import SecondSettings, configuration
from parties.site.state import JOURNAL, State
from scenarios.deployment import site_texts as site_words
from scenarios.deployment.site_texts import outlook_of_second
from scenarios.deployment.table_check import WatchedTable

_COUNTS = CountsQuestion(CountsNoise("pure", 1.0), Bags(1, 2), release=ReleaseId("counts"))
SITE, PLAN, LINES, DECISION, KNOWN = "site", "plan", "journal", "approval", "rows"
MASKS_ASKED = "masks"  # what a second server is asked
_SITES = ("north", "south", "west", "east")
_KEYS = [derive_private_key(1 + place, SECP384R1()) for place in range(len(_SITES))]
_SECOND = derive_private_key(99, SECP384R1())
_SIGNING = Ed25519PrivateKey.from_private_bytes(bytes(32))
_ASKING = _SIGNING.public_key()
_ROWS = "p,q,r,ill\n" + "".join(f"{i}.5,{i % 7},{'nsew'[i % 4]},{'yes' if i % 3 else 'no'}\n" for i in range(40))
_OTHER = "people"  # another table, whose rows are known
_CLOSING, _LONG_AGO = 4_000_000_000, 1_000_000_000.0  # seconds since 1970


class Sites(Target):
    """One site, or second server, of whose files one has other values, keys, lines or bytes, or what it is asked."""

    name: ClassVar[str] = "sites"
    count: ClassVar[int] = 20_000

    def seeds(self) -> Sequence[Input]:
        """Configurations with all sections and with few, plans with noise and secure sums of each kind, and more."""
        return [*_files()]

    def mutated(self, source: random.Random, known: Sequence[Input]) -> Input:
        """As a tree, as a text, or as bytes."""
        given, mutation = source.choice(known), Mutation(source)
        if given.route in _TREES and source.random() < 0.7:
            read, write = _TREES[given.route]
            try:
                tree = read(given.content.decode())
            except (ValueError, RecursionError):
                return Input(given.route, mutation.raw(given.content))
            return Input(given.route, write(mutation.plain(tree)).encode(errors="surrogatepass"))
        if given.route in (KNOWN, MASKS_ASKED) or source.random() < 0.5:
            return Input(given.route, mutation.raw(given.content))
        text = mutation.text(given.content.decode(errors="replace"))
        return Input(given.route, text.encode(errors="surrogatepass"))

    def attempt(self, given: Input) -> str:
        """Say what a site would read before it approves a plan, all of its log, and what it would answer by."""
        folder = self.folder / "site"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        state = State.made(folder / "state").folder
        if given.route == MASKS_ASKED:
            return _masks(state, given.content)
        for inner in ("approvals", "tables"):
            (state / inner).mkdir(mode=0o700)
        save_key(folder / "key", _KEYS[0])
        (folder / "rows.csv").write_text(_ROWS, encoding="utf-8")
        (state / "tables" / "rows.key").write_bytes(bytes(32))
        places = {
            SITE: folder / "site.toml",
            PLAN: folder / "plan.json",
            LINES: state / JOURNAL,
            DECISION: state / "approvals" / f"{_ID}.json",
            KNOWN: state / "tables" / f"{hashlib.sha256(_OTHER.encode()).hexdigest()[:32]}.rows",
        }
        for route, path in places.items():
            path.write_bytes(given.content if route == given.route else _USUAL[route])
        for path in folder.rglob("*"):
            path.chmod(0o700 if path.is_dir() else 0o600)
        settings = configuration(places[SITE])
        agreement = Agreement.load(settings.plan)
        if isinstance(settings, SecondSettings):
            return f"{len(outlook_of_second(settings, agreement).lines)} lines"
        # In this process: one of its own would be beyond the limits of an input.
        with patch.multiple(site_words, prepare=lambda *_: None, apart=lambda means, act: (act(), 0.0)):
            found = site_words.outlook(settings, agreement)
        told = [said(line) for line in State.found(settings.state).journal(reading=True).lines]
        if not found.errors:
            cohort(settings, agreement, WatchedTable(settings.data, agreement, 0).reference)
        return f"{len(found.lines)} lines, {len(found.errors)} errors, {len(told)} events"

    @classmethod
    def suffix(cls, given: Input) -> str:
        """That of the file."""
        return {SITE: ".toml", PLAN: ".json", LINES: ".jsonl", DECISION: ".json"}.get(given.route, ".rows")


def _files() -> Iterator[Input]:
    for text in (_USUAL[SITE], _site(shortest=True).encode(), _second_site().encode()):
        yield Input(SITE, text)
    real: dict[str, Any] = {"label": {"name": "q", "range": [0.0, 50.0]}, "person": "r", "rows_per_person": 12}
    believed = _plan(masked=True, servers="one_semi_honest")
    for plan in (_plan(), _plan(masked=True), believed, _plan_of_two(), _plan(**real, columns=[{"name": "p"}])):
        yield Input(PLAN, json.dumps(plan).encode())
    yield Input(MASKS_ASKED, _asked_for_masks())
    for route in (LINES, DECISION, KNOWN):
        yield Input(route, _USUAL[route])


def _site(shortest: bool = False) -> str:
    tree: dict[str, Any] = {
        "name": _SITES[0],
        "plan": "plan.json",
        "state": "state",
        "connection": {"key": "key"},
        "data": {"file": "rows.csv", "table": "patients"},
        "policy": {"aggregators": [fingerprint(_ASKING)], "protocols": ["class_ratio"]},
        "allowance": {"label": {"epsilon": 1.5}},
    }
    if not shortest:
        tree["connection"] |= {"superlink": "127.0.0.1:9092", "root": "root.pem"}
        columns = {"p": "p", "ill": {"from": "ill", "map": {"yes": "yes", "no": "no"}}}
        tree["data"] |= {"columns": columns, "missing": {"p": 0.5, "r": "n"}, "rows-per-person": 20}
        tree["policy"] |= {"approve": "plan", "public-features": True, "most-questions": 50, "least-rows": 2}
        tree["policy"] |= {
            "colluding": 0.1,
            "servers": ["one", "two"],
            "second-servers": [_plan_of_two()["second"]["masks"]],
        }
        trusted = {"epsilon": 1.0, "delta": 1e-6, "answers": 2, "unit": "party", "adjacency": "replace"}
        tree["allowance"] |= {"row": {"epsilon": 2.0, "delta": 1e-6}, "trusted": trusted}
        tree["limits"] = {"memory": "3GiB", "seconds": 30, "letter": 2**26}
    return _toml(tree)


def _plan(masked: bool = False, **changed: Any) -> dict[str, Any]:
    """A plan of one kind of questions with the noise of each site, or with that of all in a secure sum."""
    keys = [(public_text(key.public_key()), public_text(sums_key(key).public_key())) for key in _KEYS]
    promise = {"unit": "label", "adjacency": "replace", "epsilon": 1.0, "delta": 0.0, "trusted": False}
    return {
        "version": 1,
        "name": "trial",
        "aggregator": public_text(_ASKING),
        "superlink": "127.0.0.1:9092",
        "root": "none",
        "sites": [{"name": name, "key": key, "sums": sums} for name, (key, sums) in zip(_SITES, keys, strict=True)],
        "closing": _CLOSING,
        "columns": [{"name": "p"}, {"name": "q"}, {"name": "r", "text": True}],
        "label": {"name": "ill", "classes": ["no", "yes"]},
        "missing": False,
        "rows": [1, 100],
        "public": {"file": "public.csv", "sha256": "0" * 64, "rows": 10},
        "quorum": 0.75,
        "colluding": 0.1,
        "protocol": "class_ratio",
        "options": {"noise": "pure"},
        "asked": [
            {
                "kind": "counts",
                "times": 1,
                "same": terms(_COUNTS),
                "length": 10_000,
                "reply": 10_000,
                "masked": masked,
            }
        ],
        "promises": [promise],
        **changed,
    }


def _second_site() -> str:
    """The configuration of a second server."""
    tree = {
        "role": "second-server",
        "name": "ombud",
        "plan": "plan.json",
        "state": "state",
        "connection": {"key": "key", "superlink": "127.0.0.1:9092"},
        "policy": {"aggregators": [fingerprint(_ASKING)], "approve": "plan", "colluding": 0.1},
    }
    return _toml(tree)


def _plan_of_two() -> dict[str, Any]:
    masks = raw_public(masks_key(_SECOND)).hex()
    second = {"name": "ombud", "key": public_text(_SECOND.public_key()), "masks": masks}
    return _plan(masked=True, servers="two", second=second)


def _asked_for_masks() -> bytes:
    """What the second server is asked for a sum of all sites, whose random numbers are always the same."""
    agreement = Agreement.model_validate(_plan_of_two(), strict=False)
    plan = replace(sum_plan(agreement, roster_of(agreement), b"", 3), nonce=bytes(16).hex())
    cells = []
    for place, key in enumerate(_KEYS):
        told = raw_public(X25519PrivateKey.from_private_bytes(bytes([50 + place]) * 32))
        cells.append(told + signature(sums_key(key), plan.digest, SAYS, place, told))
    counted = packed_bits(np.ones(len(_KEYS), dtype=bool))
    receipts = Table(np.arange(len(_KEYS)), as_cells(cells, RECEIPT)).packed()
    return SumQuery(MASKS, plan.digest, counted + receipts, plan.packed()).packet()


def _masks(state: Path, packet: bytes) -> str:
    """What a second server says to a question."""
    agreement = Agreement.model_validate(_plan_of_two(), strict=False)
    journal = Journal(state / JOURNAL)
    server = SecondServer("ombud", _SECOND, agreement, journal, state / "answers", lambda head: True)
    own = bytes.fromhex(fingerprint(_SECOND.public_key()))
    reply_to = raw_public(X25519PrivateKey.from_private_bytes(own))
    asked = hashlib.sha256(packet).digest()
    head = Head(agreement.digest, bytes(16), 0, asked, "ombud", len(_KEYS), own, _CLOSING, reply_to)
    server.reply(vars(SignedQuestion.signed(head, packet, _SIGNING, NOTHING_KNOWN)))
    return said(journal.lines[-1])


def _lines(table: str = _OTHER) -> bytes:
    """A journal, whose times and random bytes are always the same."""
    guarantee = {"epsilon": 0.5, "delta": 0.0, "unit": "label", "adjacency": "replace", "method": "laplace"}
    with (
        TemporaryDirectory() as folder,
        patch("parties.site.accounts.time.time", lambda: _LONG_AGO),
        patch("parties.site.accounts.secrets.token_hex", lambda size: "0" * 2 * size),
    ):
        journal = Journal(Path(folder) / JOURNAL)
        journal.add("start", plan="0" * 64, table=table)
        journal.add("table", table=table, content="0" * 64, rows=64)
        journal.add("charged", key="k", table=table, trusted=False, guarantee=guarantee, exchange="0" * 32)
        journal.add("refused", why="not signed", times=2)
        return journal.path.read_bytes()


def _toml(tree: Any, place: str = "") -> str:
    """A tree as TOML, with a section for each mapping that is not in another value; what is no tree as its value."""
    if not isinstance(tree, dict):
        return _value(tree)
    plain = {key: value for key, value in tree.items() if not isinstance(value, dict)}
    text = "".join(f"{json.dumps(str(key))} = {_value(value)}\n" for key, value in plain.items() if value is not None)
    for key, value in tree.items():
        if isinstance(value, dict):
            inner = f"{place}{json.dumps(str(key))}"
            text += f"[{inner}]\n{_toml(value, f'{inner}.')}"
    return text


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {_value(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return "[]" if value is None else json.dumps(value).replace("NaN", "nan").replace("Infinity", "inf")


_TREES: dict[str, tuple[Callable[[str], Any], Callable[[Any], str]]] = {
    SITE: (tomllib.loads, _toml),
    PLAN: (json.loads, json.dumps),
    DECISION: (json.loads, json.dumps),
}
_DIGEST = Agreement.model_validate(_plan(), strict=False).digest
_ID = hashlib.sha256(_DIGEST).hexdigest()[:12]
_USUAL = {
    SITE: _site().encode(),
    PLAN: json.dumps(_plan()).encode(),
    LINES: _lines(),
    DECISION: json.dumps(vars(Decision(_ID, APPROVED, _DIGEST.hex(), None, "ada", _LONG_AGO))).encode(),
    KNOWN: bytes(range(64)),
}
