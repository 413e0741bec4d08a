"""What the protocols have in common whose parties protect real labels themselves: one question, one answer."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from aggregator.contract.protocol import Place, Promise, Protocol, Refused, Requires, Sent, Trust
from aggregator.contract.session import OneRound
from aggregator.trial.plan import PublicNumbers
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit
from federation.contract.query import OFF, Noise, ReleaseId

if TYPE_CHECKING:
    from aggregator.releases.models import Described
    from aggregator.trial.trial import World
    from federation.queries.labels import LabelledRows, LabelQuestion


class LabelProtocol(Protocol):
    """Base of these protocols. Features are public; labels have a declared range.

    noise: the law of the parties' noise, or none.
    """

    requires: ClassVar[Requires] = Requires(
        labels="real", single_rows=True, features=("impute", "scale", "standardise", "constant")
    )
    task: ClassVar[str] = "regression"
    model: ClassVar[str] = "regression"
    cannot_add: ClassVar[str] = ""  # why answers are worth nothing in a sum over parties, where they must not be seen

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
    def learn(self, answers: Any, draw: int, seed: int) -> Described:
        """The model of one noise draw from what was collected: the `Summed` X'X and X'y, or what else was `Kept`.

        Raises `FederationError`s.
        """

    @abstractmethod
    def sends(self, public: PublicNumbers) -> tuple[Sent, ...]:
        """What leaves a party."""

    @property
    def spends_delta(self) -> bool:
        """Whether the noise makes use of delta."""
        return True

    @property
    def unit(self) -> Unit:
        """What is protected."""
        return Unit.LABEL

    @property
    def unprotected(self) -> str | None:
        """Why nothing is promised whatever epsilon is asked for; None where something is."""
        return "noise is off" if self.noise == OFF else None

    def noise_at(self, trust: Trust) -> Place | Refused:
        """At every party, who trusts nobody; refused where a summation is trusted that would make no sense."""
        if self.noise == OFF:
            return Place.NOWHERE
        return Refused(self.cannot_add) if self.cannot_add and trust is Trust.SECURE else Place.PARTY

    def promise(self, public: PublicNumbers, epsilon: float, trust: Trust) -> Promise:
        """The epsilon that it aims at, for one unit."""
        if self.unprotected is not None:
            return Promise(NoGuarantee(self.unprotected), self.sends(public))
        delta = public.delta if self.spends_delta else 0.0
        return Promise(Guarantee(epsilon, delta, self.unit, Adjacency.REPLACE, type(self).__name__), self.sends(public))

    def begin(self, world: World, epsilon: float, draws: int) -> OneRound:
        """A session that asks once, and learns a model from each noise draw. Raises `InputError` without a range."""
        return LabelSession(world, self, epsilon, draws)


class LabelSession(OneRound):
    """One question about all rows of every party, and a regression from each noise draw of the answers."""

    def __init__(self, world: World, options: LabelProtocol, epsilon: float, draws: int) -> None:
        from aggregator.collectors.collectors import asked_privately
        from federation.queries.labels import LabelledRows

        plan, view = world.plan, world.views.at(OFF, math.inf)
        self._options, self._seed = options, plan.task.split
        noise = options.noise_of(epsilon, plan.public.delta)
        question = options.question(
            LabelledRows(view.public.feature_map, *world.require_label_range(), plan.public.largest_bag),
            plan.public.smallest_bag,
            noise,
            release=world.release(noise, options.asked()),
            draws=draws,
            seeded=plan.run.noise_seed is not None,
        )
        asked, promised = asked_privately(question, view.training, plan)
        super().__init__(view.public.feature_map, [asked], promised, question.release)

    @property
    def checks(self) -> tuple[str, ...]:
        """What was verified at run time, and how many answers were scaled."""
        found: tuple[str, ...] = self.answers[0].told
        return found

    def learn(self, draw: int) -> Described:
        """The model of one noise draw."""
        return self._options.learn(self.answers[0], draw, self._seed)
