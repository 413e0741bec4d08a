"""Protocols that send one additive query and learn from the noisy sum: a base for protocols of your own."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from aggregator.collectors.collectors import asked_privately
from aggregator.contract.protocol import Place, Promise, Protocol, Refused, Sent, Trust
from aggregator.contract.session import OneRound
from aggregator.trial.plan import PublicNumbers
from aggregator.trial.trial import World
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee
from federation.contract.query import OFF, ReleaseId
from federation.engines.codec import question_digest
from federation.queries.additive import AdditiveQuestion
from federation.queries.votes import VectorNoise


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
        sends = (Sent(self.sends, None, self.noise != OFF),)
        if self.noise == OFF:
            return Promise(NoGuarantee("noise is off"), sends)
        delta = public.delta if self.noise == "gaussian" else 0.0
        return Promise(Guarantee(epsilon, delta, self.asks.unit, Adjacency.REPLACE, type(self).__name__), sends)

    def begin(self, world: World, epsilon: float, draws: int) -> OneRound:
        """Begin a session that sends the query once, and learns a model from each noise draw."""
        plan, noise = world.plan, VectorNoise(self.noise, epsilon, world.plan.public.delta)
        known = {"draws": draws, "seeded": plan.run.noise_seed is not None}
        # All of the query that is not its release names it: equal queries are one release, and no others are.
        contents = question_digest(self.query(world, noise, release=ReleaseId("unnamed"), **known))
        query = self.query(world, noise, release=world.release(noise, (contents,)), **known)
        return _OneQuerySession(world, self, query)


class _OneQuerySession(OneRound):
    def __init__(self, world: World, protocol: OneQueryProtocol, query: AdditiveQuestion) -> None:
        self._protocol = protocol
        asked, promised = asked_privately(query, world.view.training, world.plan)
        super().__init__(world.feature_map, [asked], promised, query.release, asked.collector.told)

    def learn(self, draw: int) -> Any:
        """Learn from the sum of one noise draw."""
        return self._protocol.learn(self.answers[0].total("vector")[draw])
