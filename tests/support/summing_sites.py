"""Sites of a deployment in this process that have secure sums, with their folders, keys and accounts."""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from support.letter_sites import FIRST_NODE, Post, deployed, in_no_time
from support.masked_sums import World
from threadpoolctl import threadpool_limits

from aggregator.exchange.exchange import Exchange
from aggregator.server.releasing import Inquiry
from aggregator.server.variants import Variants
from aggregator.trial.plan import TrialPlan
from aggregator.trial.trial import Views
from aggregator.trial.trial import World as PlannedWorld
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Unit
from federation.contract.plugins import Reference
from federation.secure_aggregation.messages import KEYS
from federation.secure_aggregation.plan import Servers
from federation.signed_messages.aggregation_messages import (
    SUM,
    SumAnswer,
    SumQuery,
    part_packet,
    read_part,
    roster_of,
    sum_plan,
)
from federation.signed_messages.agreement import require_agreed
from federation.signed_messages.messages import (
    LETTER,
    SealedAnswer,
    SignedQuestion,
    Status,
    kind_of,
    question_packet,
    read_question,
    read_reply,
)
from parties.guard.answering import answered, question_type
from parties.helper_server import SecondServer
from parties.party_data.cohort import Cohort
from parties.site import messages as site
from parties.site import secure_aggregation as summing
from parties.site.accounts import Account, Accounts, Allowances, Journal
from parties.site.messages import Correspondent, Site
from parties.site.settings import Belief
from parties.site.worker import Means, Work, cost_of

ROWS = Reference("support.two_class_parties:Parties").to_json()
SITES = ("north", "south", "west")


@dataclass
class Town(Post):
    """Real sites behind a grid of letters; before a letter is read `before` is told who gets it and which query it is.

    `parts` are the integers that each has put into a sum, and `letters` all queries that came, by site and query.
    """

    before: Callable[[str, int], None] = lambda name, query: None
    reading: Callable[[str], None] = lambda name: None  # of a site's rows
    epsilon: float = 2.0
    seconds: tuple[str, ...] = ()
    servers: tuple[Servers, ...] = ()  # that sites believe; as the plan has them, where none are named
    parts: dict[str, list[np.ndarray]] = field(default_factory=dict)
    letters: dict[tuple[str, int], dict[str, bytes]] = field(default_factory=dict)
    replies: dict[tuple[str, int], dict[str, bytes] | None] = field(default_factory=dict)
    sites: dict[str, Correspondent] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.agreement.second is not None:
            self.seconds = (self.agreement.second.masks,)
        for name in self.keys:
            self.again(name)

    @property
    def second(self) -> str:
        """The name of the second server."""
        return self.agreement.second.name

    def again(self, name: str) -> Correspondent:
        """A site, or the second server, as it is once its process has ended, however that came about."""
        place = self.agreement.position(name)
        own = self.folder.path.parent / "sites" / name
        (own / "answers").mkdir(parents=True, exist_ok=True)
        journal = Journal(own / "journal.jsonl")
        if place == len(self.agreement.sites):
            known = name, self.keys[name], self.agreement, journal, own / "answers"
            self.sites[name] = SecondServer(*known, lambda head: True)
            return self.sites[name]
        allowances = Allowances((Account(Unit.ROW, Adjacency.REPLACE, self.epsilon, 1e-4),))
        many = self.agreement.terms.honest
        cohort = Cohort(ROWS, place, 1, None)
        self.sites[name] = Site(
            name,
            self.keys[name],
            self.agreement,
            journal,
            own / "answers",
            lambda head: True,
            replace(cohort, declared=replace(cohort.declared, honest=many)),
            Accounts("patients", allowances, journal),
            Means(),
            belief=Belief(servers=self.servers or (self.agreement.servers,), seconds=self.seconds),
        )
        return self.sites[name]

    def lines(self, name: str, event: str) -> list[dict]:
        """What a site's journal says of one kind of event."""
        return [line for line in self.sites[name].journal.lines if line["event"] == event]

    def memory(self, name: str):
        """The files of its sums."""
        return sorted((self.sites[name].answers.with_name("sums")).glob("*.sum"))

    def _reply(self, message):
        name = self.agreement.members[message.metadata.dst_node_id - FIRST_NODE].name
        letter = dict(message.content[LETTER])
        assert kind_of(letter["question"]) == SUM
        query = SumQuery.read(letter["question"]).query
        self.before(name, query)
        if self.conduct.get(name) == "silent":
            return None
        self.letters[name, query] = letter
        reply = self.replies[name, query] = self.sites[name].reply(letter)
        return Message(RecordDict({LETTER: ConfigRecord(reply)}), reply_to=message)


@contextmanager
def _read_here(town, packet, agreement, cohort, means):
    """As `worker.read`, in this process: one of its own has its tests."""
    question = read_question(packet, question_type(kind_of(packet)))
    require_agreed(question, agreement)
    cost = cost_of(question, cohort)
    assert cohort.masked  # or nobody would have been told what it costs
    name = agreement.sites[cohort.first].name

    def made():
        part = part_packet(question, answered(replace(cohort, paid=True), question))
        town.parts.setdefault(name, []).append(read_part(part, cost.numbers)[1])
        return part

    yield Work(cost, lambda: town.reading(name), made)


def town(folder, monkeypatch, sites=SITES, kind="mean_operator", **changed) -> Town:
    """A deployment of a protocol by secure sums, whose sites answer at once."""
    in_no_time(monkeypatch)
    parties = {"count": len(sites), "quorum": 1} | changed.pop("parties", {})
    options = {"protect": "row", "trust": "secure"} | changed.pop("options", {})
    privacy = {"budget": {"epsilon": 1, "delta": 1e-4}} | changed.pop("privacy", {})
    known = {"kind": kind, "options": options, "parties": parties, "privacy": privacy, **changed}
    second = "ombud" if changed.get("servers") == "two" else None
    made, keys = deployed(folder, sites, second, **known)
    found = Town(made, keys)
    for module in (summing, site):
        monkeypatch.setattr(module, "read", partial(_read_here, found))
    return found


class LetterParty:
    """A site as a party of a masked sum: what it is asked goes to it in letters, and is signed by whoever asks."""

    def __init__(self, world: "LetterWorld", name: str) -> None:
        self._world, self._name = world, name

    def answer(self, digest: bytes, query: int, question: bytes, **changed) -> bytes:
        """Its answer. Raises `InputError` where it refuses."""
        packet = self._world.packet if query == KEYS else b""
        body = self._world.plan.packed() if query == KEYS else question
        records = self._world.send(self._name, SumQuery(query, digest, body, packet), **changed)
        if records is None:
            raise InputError("the site refuses")
        return SumAnswer.read(records).body


class LetterWorld(World):
    """As `World`, over the sites of a town, whose coordinator does what it likes; `parts` are theirs."""

    def __init__(self, post: Town, **changed) -> None:
        self.post, self.told, self.revealed = post, {}, []
        agreement, folder = post.agreement, post.folder
        self.roster = roster_of(agreement)
        self.packet = question_packet(asked(post))
        numbers = asked(post).hidden_numbers
        self.plan = replace(sum_plan(agreement, self.roster, self.packet, numbers), **changed)
        self.exchange = Exchange.opened(folder.path / "hostile", agreement, folder.signing_key)
        self.parties = [LetterParty(self, site.name) for site in agreement.sites]
        self._number = 0

    @property
    def parts(self):
        """What the sites have put into the sum."""
        return [self.post.parts[site.name][-1] for site in self.post.agreement.sites]

    def send(self, name: str, query: SumQuery | None, packet: bytes | None = None, **changed):
        """The records of an answer to a new letter; None where the site refuses. `changed` are parts of its head."""
        self._number += 1
        return self.opened(name, self.letter(name, packet or query.packet(), self._number, **changed))

    def letter(self, name: str, packet: bytes, number: int, **changed):
        """A signed question, and what it is."""
        site = self.post.agreement.position(name)
        head = replace(self.exchange.head(number, packet, site), **changed)
        return head, vars(SignedQuestion.signed(head, packet, self.exchange.signing))

    def opened(self, name: str, letter):
        """What a site answers to a letter."""
        head, parts = letter
        sealed = SealedAnswer(**self.post.sites[name].reply(parts))
        packet = sealed.opened(head, self.post.keys[name].public_key(), self.exchange.reply_to)
        status, records = read_reply(packet)
        return records if status is Status.ANSWER else None

    def why(self, name: str) -> str:
        """What a site has written down last of what it refused."""
        return self.post.lines(name, "refused")[-1]["why"]


def asked(post: Town):
    """The question of a deployment."""
    plan = TrialPlan.load(post.folder.path / "world-plan.json")
    public = replace(plan.task.table, arguments={**plan.task.table.arguments, "folder": str(post.folder.path)})
    inquiry = Inquiry()
    with threadpool_limits(1):
        whole = plan.changed(table=public)
        Variants(PlannedWorld(whole, Views(whole)), inquiry)
    [(question, _)] = inquiry.questions()
    return question
