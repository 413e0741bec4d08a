"""Base class of the protocols whose parties protect real labels themselves: one query, one response of each party."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from aggregator.contract.protocol import Place, Promise, Protocol, Refused, Requires, Sent, Trust
from aggregator.contract.session import OneRound
from aggregator.trial.plan import PublicNumbers
from federation.contract.guarantee import Unit
from federation.contract.query import OFF, Noise

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
    with_delta: ClassVar[tuple[str, ...]] = ("gaussian",)  # kinds of noise that make use of delta

    noise: Any

    @abstractmethod
    def noise_of(self, epsilon: float, delta: float) -> Noise:
        """The noise that parties are asked for."""

    @abstractmethod
    def asked(self) -> tuple[str | float | None, ...]:
        """The options that decide what is asked, its noise aside: with equal ones, noise is keyed alike."""

    @abstractmethod
    def question(self, rows: LabelledRows, least: int, noise: Any, **sent: Any) -> LabelQuestion:
        """Make the query for parties that each have at least `least` rows; `sent` are further arguments of its class.

        Raises `InputError` where parties have too few rows.
        """

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
        return self.noise in self.with_delta

    @property
    def unit(self) -> Unit:
        """What is protected."""
        return Unit.LABEL

    def noise_at(self, trust: Trust) -> Place | Refused:
        """At every party, who trusts nobody; refused where a summation is trusted that would make no sense."""
        if self.noise == OFF:
            return Place.NOWHERE
        return Refused(self.cannot_add) if self.cannot_add and trust is Trust.SECURE else Place.PARTY

    def promise(self, public: PublicNumbers, epsilon: float, trust: Trust) -> Promise:
        """The epsilon that it aims at, for one unit."""
        delta = public.delta if self.spends_delta else 0.0
        return Promise.of(self, epsilon, delta, self.unit, *self.sends(public))

    def begin(self, world: World, epsilon: float, draws: int) -> OneRound:
        """A session that asks once, and learns a model from each noise draw. Raises `InputError` without a range."""
        from aggregator.collectors.one_query import QuerySession
        from federation.queries.labels import LabelledRows

        public, seed, noise = world.plan.public, world.plan.task.split, self.noise_of(epsilon, world.plan.public.delta)
        question = self.question(
            LabelledRows(world.feature_map, *world.require_label_range(), public.largest_bag),
            public.smallest_bag,
            noise,
            release=world.release(noise, self.asked()),
            **world.drawn(draws),
        )
        return QuerySession(world, question, learn=lambda collected, draw: self.learn(collected, draw, seed))
