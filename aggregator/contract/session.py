"""One release of a protocol in one world: what it asks in rounds, and what it makes of the answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aggregator.contract.outlook import Outlook
from aggregator.contract.perturbable import Perturbable
from federation.contract.errors import InputError
from federation.contract.guarantee import Guarantee, NoGuarantee
from federation.contract.query import Question, ReleaseId
from federation.features.feature_map import FeatureMap
from federation.queries.votes import Training


@dataclass(frozen=True, eq=False)
class Asked:
    """A question, behind which training it belongs, and who collects the answers; `draw` whose noise draw it is for.

    Questions that serve all draws, as most do, are for draw 0.
    """

    question: Question
    training: Training
    collector: Any  # a `Collector`, whose further methods the session knows
    draw: int = 0


class Session(ABC):
    """Begun by `Protocol.begin` for one epsilon and a number of noise draws; holds all state of the release.

    The skeleton (`aggregator.node.variants`) asks `questions` and hands the answers to `take` until there are no more
    questions. Where the aggregator makes the noise it then perturbs what `perturbable` returns; elsewhere it charges
    `guarantee` and calls `learn` for each draw. Methods may raise `FederationError`s: the variant then fails alone.
    """

    @property
    @abstractmethod
    def feature_map(self) -> FeatureMap:
        """What raw rows pass before the released model."""

    @abstractmethod
    def questions(self) -> Sequence[Asked]:
        """What to ask in the next round; nothing at the end. Called once a round."""

    def longest(self, question: Question) -> Question:
        """The longest of all that it may ask in the place of a question of its first round, which it is by default.

        Of a protocol whose later questions follow from answers: real sites agree to their length beforehand.
        """
        return question

    @abstractmethod
    def take(self, answers: Sequence[Any]) -> None:
        """The collectors of the round's questions, in their order, with what parties answered.

        A collector may be that of another session which asked the same.
        """

    def outlook(self) -> Outlook | None:
        """How loud its noise will be, by public numbers; None where it is quiet or no rule is known."""
        return None

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        """What the answers promise together, from the questions alone; of releases whose noise parties make.

        Known once `questions` was called the first time. Raises `InputError` unless a session overrides it.
        """
        raise InputError(f"{type(self).__name__} does not say what its answers promise; its package must be repaired")

    @property
    def checks(self) -> tuple[str, ...]:
        """What was verified at run time, in public words, for the ledger."""
        return ()

    @property
    def source(self) -> str | None:
        """The name of the noisy answers that it is made of: releases of one source are paid for once."""
        return None

    def perturbable(self) -> Perturbable:
        """What gets the aggregator's noise. Raises `InputError` unless a session overrides it."""
        raise InputError(f"{type(self).__name__} has nothing to perturb; its package must be repaired")

    def learn(self, draw: int) -> Any:
        """The model of one noise draw, as the protocol's kind of model describes one.

        Raises `InputError` unless a session overrides it.
        """
        raise InputError(f"{type(self).__name__} learns nothing without noise; its package must be repaired")

    def diagnostics(self) -> dict[str, float]:
        """Public numbers beside the release, for results.csv; asked for after the models were learned."""
        return {}


class OneRound(Session):
    """A session that asks all its questions at once.

    `asked` are its questions, `promised` what the answers promise together, and `release` that of the noisy ones, None
    where parties make no noise. After `take`, `answers` are the collectors in the order of the questions.
    """

    def __init__(
        self,
        feature_map: FeatureMap,
        asked: Sequence[Asked],
        promised: Guarantee | NoGuarantee,
        release: ReleaseId | None = None,
        checks: tuple[str, ...] = (),
    ) -> None:
        self._feature_map, self._due, self._promised = feature_map, list(asked), promised
        self._release, self._checks = release, checks
        self.answers: list[Any] = [one.collector for one in asked]

    @property
    def feature_map(self) -> FeatureMap:
        """What raw rows pass before the released model."""
        return self._feature_map

    def questions(self) -> Sequence[Asked]:
        """All of them, once."""
        due, self._due = self._due, []
        return due

    def take(self, answers: Sequence[Any]) -> None:
        """Those of all questions."""
        self.answers = list(answers)

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        """Of all answers together."""
        return self._promised

    @property
    def checks(self) -> tuple[str, ...]:
        """What was verified at run time, in public words."""
        return self._checks

    @property
    def source(self) -> str | None:
        """The release that parties made: what else is learned from it is paid for with it."""
        return None if self._release is None else self._release.name
