"""Small generated trials for checks: honest or hostile parties that any process can load by reference.

`GenericPair` is a pair of neighbours that an auditor builds by itself; it exposes protocols whose own pair is harmless.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Context, Message

from aggregator.contract.protocol import Protocol, Requires
from aggregator.contract.worst_case import Exact, PrivateWorstCase, Rows, Seen, Statistic
from aggregator.server.app import run_plan
from aggregator.trial.plan import KnownNumbers, ReleasePlan, RunPlan, TaskPlan, TrialPlan, VariantPlan
from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.contract.plugins import Reference
from federation.contract.query import PrivateQuestion, Question, Submission
from federation.contract.randomness import generator
from federation.contract.trust import TrustTerms
from federation.engines.codec import decode_question, encode_submission
from federation.engines.inline import CLIENT_APP, InlineGrid
from federation.engines.nodes import Placement
from parties.guard.answering import answered, question_type
from parties.party_data.cohort import Cohort, DroppedOut, Holdings
from parties.site.worker import Cost, cost_of
from scenarios.audits.auditor import Sampler, sampler
from scenarios.simulated.simulation import PublicRows

SEED = 1
PARTIES, ROWS, COLUMNS = 6, 24, 3
_DEFAULT_FEATURES: tuple[Any, ...] = ("standardise", "constant", "unit_norm")


def _rows(key: int, count: int) -> np.ndarray:
    return generator(SEED, "rows of a check", key).normal(size=(count, COLUMNS))


def public_table() -> PublicRows:
    """Unlabelled rows."""
    return PublicRows(_rows(-2, 60), tuple("abc"), ())


class Parties:
    """Parties with rows of two Gaussian classes, or with real labels in [0, 1] (`parties.party_data.cohort.Provider`).

    `mode` says what the last of them does: `honest`, `dropped` (does not answer), `nan` (sends what is no number),
    `huge` (numbers beyond all ranges) or `twice` (answers for itself twice).
    """

    def __init__(self, real: bool, bags: int, mode: str = "honest") -> None:
        self._real, self._bags, self._mode = real, bags, mode

    def holdings(self, party: int) -> Holdings:
        """The rows of one party."""
        if self._mode == "dropped" and party == PARTIES - 1:
            raise DroppedOut
        rows = _rows(party, ROWS)
        labels = np.arange(ROWS) % 2
        if self._real:
            return Holdings(party, rows, 1 / (1 + np.exp(-rows[:, 0])))
        bags = np.arange(ROWS) * self._bags // ROWS
        mixed = (labels + (np.arange(ROWS) % 5 == bags)) > 0  # so that bags differ in their shares
        return Holdings(party, rows + 1.5 * mixed[:, None], mixed.astype(np.int64), bags)

    def evaluation(self) -> None:
        """Nothing to evaluate on."""
        return None

    def sent(self, question: Question, submission: Submission) -> Submission:
        """The answers of a cohort, those of the last party as the mode has it."""
        last = submission.parties == PARTIES - 1
        if self._mode not in ("nan", "huge", "twice") or not last.any():
            return submission
        arrays = {name: np.array(array) for name, array in submission.arrays.items()}
        for name, array in arrays.items():
            if self._mode == "twice":
                arrays[name] = np.concatenate([array, array[last]])
            elif array.dtype.kind == "f":
                array[last] = np.nan if self._mode == "nan" else 1e300
            else:
                array[last] = np.iinfo(array.dtype).max
        parties = submission.parties
        if self._mode == "twice":
            parties = np.append(parties, PARTIES - 1)
        return replace(submission, parties=parties, arrays=arrays)


class CountingGrid(InlineGrid):
    """An inline grid that counts what is asked."""

    def __init__(self) -> None:
        super().__init__(CLIENT_APP)
        self.asked = 0

    def create_message(self, *arguments: Any, **further: Any) -> Any:
        """A message, counted."""
        self.asked += 1
        return super().create_message(*arguments, **further)


class SitesGrid(CountingGrid):
    """One whose nodes answer as sites of a deployment do: with noise that has no seed, and each query once.

    `costs` are what the answers of each party cost, in order; nobody's allowance ends.
    """

    def __init__(self) -> None:
        super().__init__()
        self.costs: dict[int, list[Cost]] = {}
        self._app = self._answer

    def paid(self, party: int) -> float:
        """The epsilon that a party is charged in all: each release once, and nothing for what is not private."""
        releases = {(cost.kind, cost.release): cost.guarantee for cost in self.costs.get(party, ())}
        return sum(guarantee.epsilon for guarantee in releases.values() if guarantee is not None)

    def _answer(self, message: Message, context: Context) -> Message:
        """What one site sends. Raises `InputError` for what a site would refuse."""
        kind = message.metadata.message_type.removeprefix("query.")
        question = decode_question(message.content, question_type(kind))
        known = Cohort.from_config(context.node_config)
        site = Cohort(known.reference, known.first, known.count, None, public_features=True, paid=True)
        cost = cost_of(question, site)
        for party in site.parties:
            given = self.costs.setdefault(party, [])
            known_before = any((one.release, one.query) == (cost.release, cost.query) for one in given)
            if isinstance(question, PrivateQuestion) and known_before:
                raise InputError(f"query {cost.query} of a release was answered before; each is answered once")
            given.append(cost)
        return Message(encode_submission(answered(site, question), question.fields()), reply_to=message)


def provider(requires: Requires, mode: str = "honest") -> Reference:
    """The parties of a world for a protocol with these needs."""
    arguments = {"real": requires.labels == "real", "bags": bags(requires), "mode": mode}
    return Reference("scenarios.testing.small_trials:Parties", arguments)


def bags(requires: Requires) -> int:
    """Bags of a party."""
    return 2 if requires.bags else 1


def plan(found: type[Protocol], kind: str, options: Mapping[str, Any], folder: Path, **changes: Any) -> TrialPlan:
    """The plan of a small world with one variant; `changes` replace its fields."""
    requires, real = found.requires, found.requires.labels == "real"
    each = ROWS // bags(requires)
    public = KnownNumbers(
        1e-3,
        2,
        TrustTerms(PARTIES),
        bags=bags(requires),
        smallest_bag=each,
        largest_bag=each,
        label_range=(0.0, 1.0) if real else None,
        rows=PARTIES * ROWS,
    )
    task = TaskPlan(
        Reference("scenarios.testing.small_trials:public_table"),
        tuple(requires.features) or _DEFAULT_FEATURES,
        () if real else ("0", "1"),
        "class names are public",
        {"name": "logistic", "parameters": {"regularisation": 1e-2}},
    )
    run = RunPlan(str(folder), simulation=True, noise_seed=SEED, parties_per_node=PARTIES)
    variants = (VariantPlan("checked", kind, dict(options)),)
    folder.mkdir(parents=True, exist_ok=True)
    return TrialPlan("a check", public, task, variants, ReleasePlan((5.0,)), run).changed(**changes)


def run(world: TrialPlan, placement: Placement, grid: InlineGrid | None = None) -> Path:
    """Run a plan, and return the file of its release. Raises `FederationError`s."""
    nodes = grid or InlineGrid(CLIENT_APP)
    nodes.assign(placement)
    run_plan(nodes, world)
    return Path(world.run.directory) / "checked.npz"


@dataclass(frozen=True, eq=False)
class GenericPair(PrivateWorstCase):
    """The first party of a protocol's worst case, and the same with its first row changed in one unit.

    A label becomes the other end of the labels that occur; where rows are protected, the row becomes the opposite of
    itself, or that of the unit vector where it is zero. Every run is a party of its own, whose whole answer is seen.
    `statistic` projects on the difference of means over variances of `training` answers of either side.
    """

    own: PrivateWorstCase | None = None
    unit: Unit = Unit.LABEL
    direction: np.ndarray | None = None

    def side(self, there: bool, question: Question, runs: int) -> tuple[Rows, ...]:
        """What all parties hold."""
        assert self.own is not None
        held = self.own.side(False, question, 1)[0]
        if not there:
            return (held,)
        if not len(held.labels):
            raise InputError("the worst case's first party holds no row that could change")
        labels, rows = np.array(held.labels), np.array(held.rows)
        labels[0] = other_label(labels, self.own.side(True, question, 1)[0].labels)
        if self.unit not in (Unit.LABEL, Unit.PERSON):
            rows[0] = -rows[0] if rows[0].any() else np.eye(1, rows.shape[1])[0]
        return (replace(held, rows=rows, labels=labels),)

    def parties(self, question: PrivateQuestion, runs: int) -> int:
        """One for each run."""
        return runs

    def asked(self, question: PrivateQuestion, runs: int) -> Sequence[PrivateQuestion]:
        """What the protocol asks, once."""
        return [replace(question, draws=1)]

    def seen(self, submissions: Sequence[Submission]) -> Seen:
        """All numbers of every answer, (runs, numbers)."""
        [sent] = submissions
        flat = [array.reshape(len(sent.parties), -1).astype(np.float64) for array in sent.arrays.values()]
        return {"numbers": np.concatenate(flat, axis=1)}

    def statistic(self, question: PrivateQuestion, exact: Exact) -> Statistic:
        """The projection; of training answers, all that is seen."""
        if self.direction is None:
            return lambda seen: seen["numbers"]
        return lambda seen: np.asarray(seen["numbers"] @ self.direction)


def generic_sampler(own: PrivateWorstCase, unit: Unit, question: PrivateQuestion, training: int) -> Sampler:
    """Samples of the pair, by a projection that is learned from so many other runs of either side."""
    fields: dict[str, Any] = {"described": "a generic pair", "public": own.public, "runs": own.runs, "unit": unit}
    pair = GenericPair(**fields, own=own)
    learned = sampler(pair, question, "audit|training")
    here, there = learned(False, training), learned(True, training)
    spread = here.var(axis=0) + there.var(axis=0)
    moved = there.mean(axis=0) - here.mean(axis=0)
    # What never varies and yet differs gives the sides away for certain: a large weight says so.
    direction = np.where(spread > 0, moved / np.where(spread > 0, spread, 1.0), 1e12 * np.sign(moved))
    return sampler(replace(pair, direction=direction), question, "audit|generic")


def other_label(labels: np.ndarray, further: np.ndarray) -> float:
    """Return the label that is furthest from the first, among those that occur on either side."""
    known = np.concatenate([labels, further])
    found: float = known[np.argmax(np.abs(known - labels[0]))]
    return found
