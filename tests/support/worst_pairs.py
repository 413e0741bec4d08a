"""Worst pairs of neighbours for tests: what both sides answer, audits of it, and parties whose noise is mistaken."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pytest

from aggregator.contract.registry import protocol
from aggregator.contract.worst_case import PrivateWorstCase, Rows, Seen, Statistic, WorstCase
from aggregator.ensembles.worst_case import WorstVectors
from aggregator.protocols.mean_operator.session import WorstSums
from aggregator.trial.plan import PublicNumbers
from federation.contract.guarantee import Guarantee
from federation.contract.query import PrivateQuestion, Submission
from federation.mechanisms.audits import AuditResult
from parties.guard.answering import answered, answerer
from scenarios.audits.auditor import audit_sides, begun, chosen_of, cohort, private_question, sampler
from scenarios.settings.sweep import Variant


@dataclass(frozen=True, eq=False)
class Pair:
    """A worst case, and the question that parties of both its sides answer."""

    worst: PrivateWorstCase
    question: PrivateQuestion

    def held(self, there: bool) -> tuple[Rows, ...]:
        """What the parties of a side hold."""
        return self.worst.side(there, self.question, 1)

    def answers(self, there: bool, name: str, runs: int) -> list[Submission]:
        """What they send in so many independent runs."""
        with cohort(self.worst.side(there, self.question, runs), self.worst.parties(self.question, runs)) as node:
            found = [
                answered(
                    node,
                    replace(asked, release=replace(asked.release, name=f"audit|{name}|{int(there)}"), seeded=True),
                )
                for asked in self.worst.asked(self.question, runs)
            ]
        assert not any(submission.failures for submission in found)
        return found

    def seen(self, there: bool, name: str, runs: int) -> Seen:
        """What is seen of that."""
        return self.worst.seen(self.answers(there, name, runs))

    @property
    def statistic(self) -> Statistic:
        """By which audits tell both sides apart."""
        return self.worst.statistic(self.question, lambda there: without_noise(self, 1, there))

    @property
    def claim(self) -> tuple[float, float]:
        """What a party promises with its answer; of shares and of several answers, what they promise together."""
        promised = self.question.payment()
        if not self.question.shared and self.question.release.queries == 1:
            promised = self.answers(False, "promise", 1)[0].guarantee
        assert isinstance(promised, Guarantee)
        return promised.epsilon, promised.delta


@dataclass(frozen=True, eq=False)
class _Summed:
    """Of a sum of shares that over some parties is seen, the first among them, who holds what changes."""

    summed: tuple[int, ...] = (0,)

    def parties(self, question: PrivateQuestion, runs: int) -> int:
        """All up to the last of these, who hold the rows of the side by turns."""
        assert [party for party in self.summed if party % len(self.summed) == 0] == [0]
        return max(self.summed) + 1

    def seen(self, submissions: Sequence[Submission]) -> Seen:
        """The sum over them."""
        [sent] = submissions
        [name] = {"sums", "vectors"} & sent.arrays.keys()
        own = sent.arrays[name][list(self.summed)]
        return super().seen([replace(sent, arrays={**sent.arrays, name: own})])

    def added(self, question: PrivateQuestion) -> int:
        return len(self.summed)


@dataclass(frozen=True, eq=False)
class SumOf(_Summed, WorstSums):
    """The sum of rows over some parties."""


@dataclass(frozen=True, eq=False)
class VectorsOf(_Summed, WorstVectors):
    """The sum of vectors over some parties."""


def variant_of(kind: str, options: dict[str, Any]) -> Variant:
    """A variant with all options of a protocol."""
    return Variant("a variant", kind, asdict(protocol(kind)(**options)), {}, False)


def worst_of(kind: str, options: dict[str, Any], public: PublicNumbers, units: int = 1) -> WorstCase:
    """The worst case of a protocol with these options."""
    return chosen_of(variant_of(kind, options)).worst_case(units, public)


def pair_of(kind: str, options: dict[str, Any], public: PublicNumbers, units: int = 1, epsilon: float = 1.0) -> Pair:
    """That of a protocol whose noise parties make."""
    worst = worst_of(kind, options, public, units)
    assert isinstance(worst, PrivateWorstCase)
    return Pair(worst, private_question(begun(worst, variant_of(kind, options), epsilon, public.delta)))


def sum_of(pair: Pair, parties: Sequence[int]) -> Pair:
    """The same question about shares, of which those of some parties are seen in their sum."""
    kind = SumOf if isinstance(pair.worst, WorstSums) else VectorsOf
    return replace(pair, worst=kind(**{**vars(pair.worst), "summed": tuple(parties)}))


def audited(pair: Pair, runs: int) -> AuditResult:
    """The audit of what parties promise with their own answers."""
    return audit_sides(sampler(pair.worst, pair.question), pair.claim, runs)


def without_noise(pair: Pair, runs: int, there: bool) -> Seen:
    """What would be seen of a side if nobody made noise."""
    off = replace(pair.question, noise=replace(pair.question.noise, kind="off"))
    with cohort(pair.worst.side(there, pair.question, runs), pair.worst.parties(pair.question, runs)) as node:
        return pair.worst.seen([answered(node, asked) for asked in pair.worst.asked(off, runs)])


def mistake_mechanism(monkeypatch: pytest.MonkeyPatch, mistake: Callable[..., Any]) -> None:
    """Parties whose noise is `mistake(question, *arguments)` in place of `question.mechanism(*arguments)`.

    What they promise and pay stays what it was.
    """

    def mistaken(kind: str) -> Callable[[Any, PrivateQuestion], Any]:
        answer = answerer(kind)

        def act_wrongly(node: Any, question: PrivateQuestion) -> Any:
            wrong = copy.copy(question)
            object.__setattr__(wrong, "mechanism", lambda *arguments: mistake(question, *arguments))
            return answer(node, wrong)

        return act_wrongly

    monkeypatch.setattr("parties.guard.answering.answerer", mistaken)
