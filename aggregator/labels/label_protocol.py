"""What the protocols have in common whose parties protect real labels themselves: one question, one answer."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from aggregator.contract.protocol import Place, Protocol, Refused, Requires, Trust
from aggregator.contract.public_numbers import Promise, PublicNumbers, Sent
from aggregator.contract.session import Asked, Session
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit
from federation.contract.question import OFF, Noise, ReleaseId
from federation.features import FeatureMap

if TYPE_CHECKING:
    from aggregator.answers.label_answers import LabelAnswers
    from aggregator.released.released_estimators import Described
    from aggregator.world.world import World
    from federation.questions.labels import LabelledRows, LabelQuestion


class LabelProtocol(Protocol):
    """Base of these protocols. Features are public; labels have a declared range.

    noise: the law of the parties' noise, or none.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}
    requires: ClassVar[Requires] = Requires(labels="real", single_rows=True, features=("standardise", "constant"))
    task: ClassVar[str] = "regression"
    model: ClassVar[str] = "regression"

    noise: Any

    @abstractmethod
    def noise_of(self, epsilon: float, delta: float) -> Noise:
        """The noise that parties are asked for."""

    @abstractmethod
    def asked(self) -> tuple[str | float | None, ...]:
        """The options that decide what is asked, its noise aside: with equal ones, noise is keyed alike."""

    @abstractmethod
    def question(
        self, rows: LabelledRows, least: int, noise: Any, *, release: ReleaseId, draws: int, seeded: bool
    ) -> LabelQuestion:
        """What parties are asked, of whom each has `least` rows or more. Raises `InputError`."""

    @abstractmethod
    def learn(self, answers: LabelAnswers, draw: int, seed: int) -> Described:
        """The model of one noise draw. Raises `FederationError`s."""

    @abstractmethod
    def sends(self, public: PublicNumbers) -> tuple[Sent, ...]:
        """What leaves a party."""

    @property
    def spends_delta(self) -> bool:
        """Whether the noise makes use of delta."""
        return True

    @property
    def unprotected(self) -> str | None:
        """Why nothing is promised whatever epsilon is asked for; None where something is."""
        return "noise is off" if self.noise == OFF else None

    def noise_at(self, trust: Trust) -> Place | Refused:
        """At every party, who trusts nobody."""
        return Place.NOWHERE if self.noise == OFF else Place.PARTY

    def promise(self, public: PublicNumbers, epsilon: float, trust: Trust) -> Promise:
        """The epsilon that it aims at, for one label."""
        if self.unprotected is not None:
            return Promise(NoGuarantee(self.unprotected), self.sends(public))
        delta = public.delta if self.spends_delta else 0.0
        return Promise(
            Guarantee(epsilon, delta, Unit.LABEL, Adjacency.REPLACE, type(self).__name__), self.sends(public)
        )

    def begin(self, world: World, epsilon: float, draws: int) -> LabelSession:
        """A session that asks once, and learns a model from each noise draw. Raises `InputError` without a range."""
        return LabelSession(world, self, epsilon, draws)


class LabelSession(Session):
    """One question about all rows of every party, and a regression from each noise draw of the answers."""

    def __init__(self, world: World, options: LabelProtocol, epsilon: float, draws: int) -> None:
        from aggregator.answers.label_answers import LabelAnswers
        from aggregator.central.releasing import local_guarantee
        from federation.questions.labels import LabelledRows

        plan = world.plan
        if plan.label_range is None:
            raise InputError(f"'{world.own.name}' needs real labels with a declared range, and the plan has classes")
        self._options, self._seed, self._view = options, plan.split, world.views.at(OFF, math.inf)
        noise = options.noise_of(epsilon, plan.delta)
        question = options.question(
            LabelledRows(self._view.public.feature_map, *plan.label_range, plan.largest_bag),
            plan.smallest_bag,
            noise,
            release=world.release(noise, options.asked()),
            draws=draws,
            seeded=plan.noise_seed is not None,
        )
        self._guarantee = local_guarantee(plan, question.promise())
        promise = self._guarantee if isinstance(self._guarantee, Guarantee) else None
        self._answers = LabelAnswers(question, plan.parties, promise)
        self._asked = [Asked(question, self._view.training, self._answers)]

    @property
    def feature_map(self) -> FeatureMap:
        """The public one."""
        return self._view.public.feature_map

    def questions(self) -> Sequence[Asked]:
        """The question, once."""
        due, self._asked = self._asked, []
        return due

    def take(self, answers: Sequence[Any]) -> None:
        """What parties answered."""
        [self._answers] = answers

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        """Of every answer."""
        return self._guarantee

    @property
    def checks(self) -> tuple[str, ...]:
        """Answers are checked when they arrive."""
        from aggregator.answers.local_answers import CHECKED

        return (CHECKED,)

    @property
    def source(self) -> str:
        """The release that parties made."""
        return self._answers.question.release.name

    def learn(self, draw: int) -> Described:
        """The model of one noise draw."""
        return self._options.learn(self._answers, draw, self._seed)
