"""Sites of a deployment in this process, behind a grid that carries letters: honest, slow, hostile and absent ones."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import SimpleNamespace

from flwr.app import ConfigRecord, Error, Message, RecordDict
from flwr.serverapp import Grid
from support.two_class_parties import public_table

from aggregator.exchange import message_engine as letter_grid
from federation.contract.plugins import Reference
from federation.signed_messages.agreement import Agreement, require_agreed
from federation.signed_messages.keys import masks_key, new_site_key, public_text, raw_public, sums_key
from federation.signed_messages.messages import (
    LETTER,
    SHORTEST_REPLY,
    SealedAnswer,
    SignedQuestion,
    Status,
    answer_packet,
    kind_of,
    read_question,
    status_packet,
)
from parties.guard.answering import answered, question_type
from parties.party_data.cohort import Cohort
from scenarios.deployment.folder import Folder, make_folder
from scenarios.settings.schema import resolve

FIRST_NODE = 1001  # Flower's ids of nodes are no numbers from 1
CLOSING = 4_000_000_000  # seconds since 1970


def in_no_time(monkeypatch) -> None:
    """Nothing is waited for: who does not answer has taken too long once nobody else is awaited, and no earlier."""
    for name in ("_AWAY", "_AGAIN", "_PAUSE"):
        monkeypatch.setattr(letter_grid, name, 0.02)
    ahead, pull = 0.0, letter_grid.LetterGrid.pull_messages

    def pulled(grid, names):
        nonlocal ahead
        awaited = {one.message.metadata.dst_node_id for one in grid._pending.values()}
        if all(grid._grid.hopeless(node) for node in awaited):
            ahead += grid._patience + 1.0
        return pull(grid, names)

    monkeypatch.setattr(letter_grid.LetterGrid, "pull_messages", pulled)
    monkeypatch.setattr(letter_grid, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + ahead))


def write_public(path: Path) -> Path:
    """The public rows of `support.two_class_parties` as a CSV file, with a column of labels that nobody may look at."""
    lines = [",".join(map(repr, row)) + ",no" for row in public_table().rows.tolist()]
    path.write_text("\n".join(["p,q,r,ill", *lines]) + "\n")
    return path


def scenario(kind="soft_vote", options=(), data=(), parties=(), privacy=(), **top):
    """A scenario that real sites can be asked by."""
    return {
        "name": "trial",
        "data": {
            "source": "private.csv",
            "label": "ill",
            "classes": ["no", "yes"],
            "auxiliary": "public.csv",
            **dict(data),
        },
        "parties": {"count": 3, "quorum": 0.6, **dict(parties)},
        "protocols": [{"kind": kind, **dict(options)}],
        "privacy": {"epsilon": 1, "delta": 1e-5, **dict(privacy)},
        **top,
    }


def deployed(folder: Path, sites=("north", "south", "west"), second=None, **changed):
    """A sealed deployment in a folder, and the private keys of its sites, and of its second server."""
    known = {
        "superlink": "127.0.0.1:9",
        "sites": sites,
        "closing": CLOSING,
        "rows": (60, 67),
        "bags": None,
        "second": second,
    }
    made, _ = make_folder(folder / "D", resolve(scenario(**changed)), write_public(folder / "public.csv"), known, [])
    keys = {name: new_site_key() for name in (*sites, *([second] if second else []))}
    (folder / "keys").mkdir()
    for name, key in keys.items():
        own = raw_public(masks_key(key)).hex() if name == second else public_text(sums_key(key).public_key())
        (folder / "keys" / f"{name}.pub").write_text(f"{public_text(key.public_key())}\n{own}\n")
    made.seal(folder / "keys")
    nodes = {name: FIRST_NODE + place for place, name in enumerate(keys)}
    (made.path / "nodes.json").write_text(json.dumps(nodes))
    return made, keys


@dataclass
class Post(Grid):
    """A grid to the sites of a deployment: what each does is `conduct`, else it answers.

    `silent` ones say nothing, `away` ones cannot be reached, `late` ones not yet,
    `refusing` and `busy` ones say so (a `busy` one once),
    `forged` ones send what they have not signed, `wrong` ones a letter of other parts, and `broken` ones what cannot
    even be fetched.
    """

    folder: Folder
    keys: Mapping[str, object]
    conduct: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, int]] = field(default_factory=list)  # who was asked which question, in order
    _out: dict[str, Message] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.agreement = Agreement.load(self.folder.path / "plan.json")

    def set_run(self, run):
        raise NotImplementedError

    run = None

    def get_node_ids(self):
        return range(FIRST_NODE, FIRST_NODE + len(self.keys))

    def create_message(self, content, message_type, dst_node_id, group_id, ttl=None):
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def push_messages(self, messages):
        names = []
        for message in messages:
            site = self.agreement.members[message.metadata.dst_node_id - FIRST_NODE].name
            name = "" if self.conduct.get(site) in ("away", "late") else os.urandom(8).hex()  # as Flower's own
            if name:
                message.metadata.__dict__["_message_id"] = name
                self._out[name] = message
            names.append(name)
        return names

    def pull_messages(self, message_ids):
        for name in message_ids:
            if name in self._out and (reply := self._reply(self._out[name])) is not None:
                del self._out[name]
                yield reply

    def send_and_receive(self, messages, *, timeout=None):
        raise NotImplementedError

    def hopeless(self, node):
        """Whether nothing will come from a site that may be taken."""
        conduct = self.conduct.get(self.agreement.members[node - 1].name)
        return conduct in ("silent", "away", "forged", "wrong", "broken", "failing")

    def _reply(self, message):
        place = message.metadata.dst_node_id - FIRST_NODE
        name = self.agreement.sites[place].name
        conduct = self.conduct.get(name)
        if conduct == "silent":
            return None
        if conduct == "broken":
            raise ValueError("an object that Flower cannot read")
        if conduct == "failing":
            return Message(Error(code=1, reason="something else"), reply_to=message)
        if conduct == "wrong":
            return Message(RecordDict({LETTER: ConfigRecord({"a": 3})}), reply_to=message)
        signed = SignedQuestion(**message.content[LETTER])
        head = signed.opened(self.agreement.aggregator_key)
        assert (head.site, head.position) == (name, place)
        self.asked.append((name, head.number))
        if conduct in ("busy", "refusing"):
            packet = status_packet(Status.BUSY if conduct == "busy" else Status.REFUSED, SHORTEST_REPLY)
            self.conduct.pop(name) if conduct == "busy" else None
        else:
            packet = self._answer(signed.question, place)
        key = new_site_key() if conduct == "forged" else self.keys[name]
        return Message(
            RecordDict({LETTER: ConfigRecord(asdict(SealedAnswer.sealed_for(head, packet, key)))}), reply_to=message
        )

    def _answer(self, packet, place):
        question = read_question(packet, question_type(kind_of(packet)))
        require_agreed(question, self.agreement)
        holdings = Reference("support.two_class_parties:Parties").to_json()
        cohort = Cohort(holdings, place, 1, None, public_features=True, paid=True)
        return answer_packet(question, answered(cohort, question))
