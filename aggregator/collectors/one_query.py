"""Sessions that send one private query, and protocols that send an additive one and learn from the noisy sum.

`OneQueryProtocol` is a base for protocols of your own.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from aggregator.collectors.collectors import asked_privately
from aggregator.contract.protocol import Place, Promise, Protocol, Refused, Sent, Trust
from aggregator.contract.session import Asked, OneRound
from aggregator.trial.plan import PublicNumbers
from aggregator.trial.trial import World
from federation.contract.guarantee import Assumption
from federation.contract.query import OFF, PrivateQuestion, ReleaseId
from federation.engines.codec import question_digest
from federation.features.feature_map import FeatureMap
from federation.queries.additive import AdditiveQuestion
from federation.queries.votes import Training, VectorNoise


class QuerySession(OneRound):
    """Sends one private query to all parties, and learns from each noise draw of the responses, which are `collected`.

    `before` and `after` it are queries without noise in the same round. The query is sent behind a `training`, and
    `feature_map` is that of the released models; by default both are the world's. `learn` makes the model of what was
    collected and the number of a draw, unless a subclass overrides the method. `further` are assumptions of this
    release beside those of a plan.
    """

    def __init__(
        self,
        world: World,
        query: PrivateQuestion,
        *further: Assumption,
        training: Training | None = None,
        feature_map: FeatureMap | None = None,
        before: Sequence[Asked] = (),
        after: Sequence[Asked] = (),
        learn: Callable[[Any, int], Any] | None = None,
    ) -> None:
        asked, promised = asked_privately(query, training or world.view.training, world.plan, *further)
        self._place, self._learned = len(before), learn
        released = world.feature_map if feature_map is None else feature_map
        super().__init__(released, [*before, asked, *after], promised, query.release)

    @property
    def collected(self) -> Any:
        """The collector of the query."""
        return self.answers[self._place]

    @property
    def checks(self) -> tuple[str, ...]:
        """Statements for the ledger: how the responses were summed, and which checks they passed."""
        return tuple(self.collected.told)

    def learn(self, draw: int) -> Any:
        """The model of one noise draw."""
        return super().learn(draw) if self._learned is None else self._learned(self.collected, draw)


@dataclass(frozen=True)
class OneQueryProtocol(Protocol):
    """Base of protocols whose parties each send one vector with noise, of which the aggregator sees the sum.

    A subclass names the query that it `asks` and what a party `sends`, in words. It makes the `query`, and learns a
    model from the noisy sum. noise: the law of each party's noise, or none.
    """

    asks: ClassVar[type[AdditiveQuestion]]
    sends: ClassVar[str]

    noise: Literal["pure", "gaussian", "off"] = "pure"

    @abstractmethod
    def query(self, trial: World, noise: VectorNoise, **sent: Any) -> AdditiveQuestion:
        """Make the query; `sent` goes to its constructor. Raises `InputError` for a trial that it cannot work with."""

    @abstractmethod
    def learn(self, total: np.ndarray) -> Any:
        """Learn the model from the sum (D,) of the noisy vectors, as the protocol's kind of model describes one."""

    def noise_at(self, trust: Trust) -> Place | Refused:
        """At every party, which trusts nobody."""
        return Place.NOWHERE if self.noise == OFF else Place.PARTY

    def promise(self, public: PublicNumbers, epsilon: float, trust: Trust) -> Promise:
        """Promise the epsilon that it aims at; delta is for Gaussian noise only."""
        delta = public.delta if self.noise == "gaussian" else 0.0
        return Promise.of(self, epsilon, delta, self.asks.unit, Sent(self.sends, None, self.noise != OFF))

    def begin(self, world: World, epsilon: float, draws: int) -> OneRound:
        """Begin a session that sends the query once, and learns a model from each noise draw."""
        noise, known = VectorNoise(self.noise, epsilon, world.plan.public.delta), world.drawn(draws)
        # All of the query that is not its release names it: equal queries are one release, and no others are.
        contents = question_digest(self.query(world, noise, release=ReleaseId("unnamed"), **known))
        query = self.query(world, noise, release=world.release(noise, (contents,)), **known)
        return QuerySession(world, query, learn=lambda summed, draw: self.learn(summed.total("vector")[draw]))
