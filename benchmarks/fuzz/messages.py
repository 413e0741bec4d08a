"""Messages between aggregator and nodes, decoded and answered by the apps of both; plans, and settings of nodes."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from flwr.app import ConfigRecord, Context, Error, Message, RecordDict
from flwr.common.constant import ErrorCode
from flwr.supercore.task_identity import TaskIdentity

from aggregator.contract.ledger import Ledger
from aggregator.server.releasing import Inquiry
from aggregator.server.variants import Variants
from aggregator.trial.plan import TrialPlan
from aggregator.trial.trial import Views, World
from benchmarks.fuzz.inputs import Input, Target
from benchmarks.fuzz.mutation import Mutation
from benchmarks.fuzz.records import changed, from_bytes, to_bytes
from benchmarks.fuzz.worlds import PER_NODE, WORLDS, SmallWorld
from federation.contract.plugins import Reference
from federation.contract.query import Collector, Declared, PrivateQuestion, Question, check_submission
from federation.engines.codec import decode_question, decode_submission, encode_question
from federation.engines.nodes import ROLL_CALL, Placement, QueueGrid, StockGrid, handle, node_config, present
from federation.engines.sending import Failures, describe
from parties.app import app
from parties.guard.answering import answered, question_type
from parties.party_data.cohort import Cohort
from parties.site.worker import cost_of
from scenarios.testing import small_trials as small

QUESTION, ASKED, ANSWER, ROLL, ERROR, PLAN, NODE = (
    "question",  # to the app of a node in a simulation
    "asked",  # to a site
    "answer",  # to the collectors of a world, which then learns
    "roll",  # to a grid that numbers its nodes
    "error",  # the reason of a reply without an answer
    "plan",  # what an aggregator is asked to do
    "node",  # a node's own configuration
)
_RECORDS = (QUESTION, ASKED, ANSWER, ROLL)  # whose content are records; that of the others is text
_SLOW = ("class_ratio", "class_means", "row_class_means", "error_marginals")  # worlds that take long to learn
_SELDOM = 20  # of the answers to them, one in so many is learned from
_DEPLOYED: Mapping[str, Any] = {"simulation": False, "noise_seed": None, "draws": 1}
_ONE_NODE = Placement(PER_NODE, PER_NODE, Reference("builtins:dict"), small.SEED)
_DECLARED = Declared(most_rows=small.ROWS, label_range=(0.0, 1.0))  # by the sites that are asked


class _Witness(logging.Handler):
    """Notes the errors that a node keeps to itself, which are logged and not raised."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.errors: list[BaseException] = []

    @contextmanager
    def told(self) -> Iterator[None]:
        """Raises the first that was noted meanwhile."""
        self.errors.clear()
        yield
        for error in self.errors:
            raise error

    def emit(self, record: logging.LogRecord) -> None:
        """Note what a party or node failed of; not what several parties at once fail of, who are then served alone."""
        if record.exc_info and record.exc_info[1] is not None and "at once" not in record.msg:
            self.errors.append(record.exc_info[1])


class _Replies(QueueGrid):
    """A grid on which every message has the same reply."""

    def __init__(self, reply: Callable[[Message], Message]) -> None:
        super().__init__()
        self._reply = reply

    def _advance(self) -> None:
        if self._queue:
            self._accept(map(self._reply, self._next()[1]))

    def close(self) -> None:
        """Nothing is held."""


class Messages(Target):
    """Every question and answer of small worlds, roll calls, errors, plans and configurations, with other contents."""

    name: ClassVar[str] = "messages"
    count: ClassVar[int] = 50_000

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._worlds = {name: SmallWorld(name, folder) for name in WORLDS}
        self._sent: dict[tuple[str, int], list[bytes]] = {}  # what the other nodes answer to each question of a world
        self._witness = _Witness()
        for module in ("parties.app", "parties.party_data.isolation"):
            logger = logging.getLogger(module)
            logger.setLevel(logging.DEBUG)
            logger.propagate = False
            logger.addHandler(self._witness)

    def seeds(self) -> Sequence[Input]:
        """What small worlds say: questions and answers of their first round, roll calls, errors, plans, settings."""
        found = []
        for name, world in self._worlds.items():
            for number, (question, _) in enumerate(_asked(world.begun()[1])):
                asked = encode_question(question)
                found.append(Input(f"{QUESTION}+{name}+{number}", to_bytes(asked)))
                nodes = map(world.placement.config, range(world.placement.nodes))
                sent = [to_bytes(self._replied(config, question, asked).content) for config in nodes]
                self._sent[name, number] = sent
                found.append(Input(f"{ANSWER}+{name}+{number}", sent[0]))
            for number, (question, _) in enumerate(_asked(world.begun(**_DEPLOYED)[1])):
                if isinstance(question, PrivateQuestion):  # whose name is drawn anew in every world
                    question = replace(question, release=replace(question.release, name=ASKED))
                found.append(Input(f"{ASKED}+{name}+{number}", to_bytes(encode_question(question))))
            plan = world.plan.changed(directory="released")  # the same in every process, and nothing is written there
            found.append(Input(f"{PLAN}+{name}", json.dumps(plan.to_dict()).encode()))
        found.append(
            Input(ROLL, to_bytes(RecordDict({"node": ConfigRecord({"partition-id": 0, "num-partitions": 3})})))
        )
        found += [Input(ERROR, text.encode()) for text in ("ValueError: no\nTraceback", "the party 3 has no rows", "")]
        name = "label_sums"
        config = {**self._worlds[name].placement.config(0), "num-partitions": 3}
        return [*found, Input(f"{NODE}+{name}", json.dumps(config).encode())]

    def mutated(self, source: random.Random, known: Sequence[Input]) -> Input:
        """Records as records, the rest as JSON or text."""
        given, mutation = source.choice(known), Mutation(source)
        how = given.route.split("+")[0]
        if how in _RECORDS:
            return Input(given.route, changed(source, mutation, given.content))
        text = given.content.decode(errors="replace")
        if how != ERROR and source.random() < 0.95:
            try:
                text = json.dumps(_changed_within(source, mutation, json.loads(text)))
            except (ValueError, RecursionError):
                text = mutation.text(text)
        else:
            text = mutation.text(text)
        return Input(given.route, text.encode(errors="surrogatepass"))

    def attempt(self, given: Input) -> str:
        """Hand it to whom it is for."""
        how, *further = given.route.split("+")
        match how:
            case "question":
                return self._ask(further[0], int(further[1]), from_bytes(given.content))
            case "asked":
                return self._charged(further[0], int(further[1]), from_bytes(given.content))
            case "answer":
                return self._answer(further[0], int(further[1]), given.content)
            case "roll":
                return _called_up(from_bytes(given.content))
            case "error":
                return _failed(given.content.decode(errors="replace"))
            case "plan":
                return self._plan(given.content)
            case _:
                return self._configured(further[0], given.content.decode(errors="surrogatepass"))

    @classmethod
    def suffix(cls, given: Input) -> str:
        """Flower's records, or text."""
        return ".pb" if given.route.split("+")[0] in _RECORDS else ".json"

    def _ask(self, name: str, number: int, records: RecordDict) -> str:
        question = self._questions(name)[number][0]
        reply = self._replied(self._worlds[name].placement.config(0), question, records)
        return "an error" if reply.has_error() else f"{len(reply.content)} records"

    def _charged(self, name: str, number: int, records: RecordDict) -> str:
        """What a site would charge for an answer, and the answer."""
        known, kind = self._worlds[name].placement, self._questions(name, **_DEPLOYED)[number][0].kind
        question = decode_question(records, question_type(kind))
        site = Cohort(known.holdings.to_json(), 0, 1, None, public_features=True, declared=_DECLARED)
        cost = cost_of(question, site)
        with self._witness.told():
            submission = answered(replace(site, paid=True), question)
        check_submission(question, submission)
        return f"{cost.length} bytes, {len(submission.failures)} failed"

    def _replied(self, config: Mapping[str, Any], question: Question, records: RecordDict) -> Message:
        """A node's reply. Raises the first error that it kept to itself."""
        grid = _Replies(lambda message: message)
        message = grid.create_message(records, f"query.{question.kind}", 1, group_id="")
        with self._witness.told():
            return handle(app, message, Context(1, 1, dict(config), RecordDict(), {}))

    def _questions(self, name: str, **changes: Any) -> list[tuple[Question, list[Collector]]]:
        return _asked(self._worlds[name].begun(**changes)[1])

    def _answer(self, name: str, number: int, content: bytes) -> str:
        """The first node's answer to one question, beside all other answers; what is taken is learned from."""
        variants, inquiry = self._worlds[name].begun()
        refused: dict[int, str] = {}
        for position, (question, collectors) in enumerate(_asked(inquiry)):
            first, *others = self._sent[name, position]
            for sent in (content if position == number else first, *others):
                submission = decode_submission(from_bytes(sent), question.fields())
                for collector in collectors:
                    refused |= collector.add(submission)
        inquiry.close()
        if name in _SLOW and sum(content) % _SELDOM:
            return f"{len(refused)} refused"
        variants.proceed(Ledger())
        if inquiry.questions():
            return f"{len(refused)} refused, asked again"
        variants.finish(Ledger(None))
        return f"{len(refused)} refused, learned"

    def _plan(self, content: bytes) -> str:
        """Begin the variants of a plan; nobody is asked."""
        file = self.folder / "plan.json"
        file.write_bytes(content)
        plan, inquiry = TrialPlan.load(file), Inquiry()
        variants = Variants(World(plan, Views(plan)), inquiry)
        return f"{len(inquiry.questions())} questions, {len(variants.outlooks())} outlooks"

    def _configured(self, name: str, text: str) -> str:
        """Answer an ordinary question, and the roll call, with a configuration that is an object as Flower's are."""
        try:
            config = json.loads(text)
        except (ValueError, RecursionError):
            return "no configuration"
        if not isinstance(config, dict):
            return "no configuration"
        context = Context(1, 1, config, RecordDict(), {})
        Cohort.from_config(node_config(context))
        question = self._questions(name)[0][0]
        self._replied(config, question, encode_question(question))
        present(_Replies(lambda message: message).create_message(RecordDict(), f"query.{ROLL_CALL}", 1, ""), context)
        return "answered"


def _asked(inquiry: Inquiry) -> list[tuple[Question, list[Collector]]]:
    """The questions of a round by their kinds: those of a deployment come in an order that is drawn anew."""
    return sorted(inquiry.questions(), key=lambda asked: asked[0].kind)


def _called_up(records: RecordDict) -> str:
    """A grid whose only node answers the roll call with these records."""
    nodes = _Replies(lambda message: Message(records, reply_to=message))
    nodes.assign(_ONE_NODE)
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1  # as Flower says of the process of an app
    return f"one of {StockGrid(nodes).partitions} called up"


def _failed(reason: str) -> str:
    """A grid whose node answers with an error of this reason."""
    nodes = _Replies(lambda message: Message(Error(ErrorCode.UNKNOWN, reason), reply_to=message))
    nodes.assign(_ONE_NODE)
    grid, failures = StockGrid(nodes), Failures(verbose=True)
    grid.push_messages([nodes.create_message(RecordDict(), "query.votes", 1, group_id="")])
    for reply in grid.pull_messages({"1"}):
        failures.add(range(3), str(reply.error.reason))
    return f"{len(describe(failures.causes())) > 0}"


def _changed_within(source: random.Random, mutation: Mutation, value: Any) -> Any:
    """A changed tree; JSON that is a text in it is changed as a tree as often as not."""
    if isinstance(value, dict) and source.random() < 0.5:
        inner = [key for key, text in value.items() if isinstance(text, str) and text.startswith("{")]
        if inner:
            key = source.choice(inner)
            return {**value, key: json.dumps(mutation.plain(json.loads(value[key])))}
    return mutation.plain(value)
