"""The query for one vector of each party, to which the party adds calibrated noise: a base for queries of your own."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, Unit
from federation.contract.query import Field, PrivateQuestion, within
from federation.mechanisms.noise.additive import AdditiveMechanism, calibrate
from federation.queries.votes import VectorNoise

_LARGEST = 2.0**80  # of an entry, noise included


@dataclass(frozen=True)
class AdditiveQuestion(PrivateQuestion):
    """Base of queries for one vector of `numbers` numbers, of which one `unit` moves `sensitivity` in the L2 norm.

    The noise is `pure` (L2-Gamma), `gaussian` (discrete Gaussian) or `off`.

    Examples:
        >>> import dataclasses
        >>> from federation.contract.query import ReleaseId
        >>> @dataclasses.dataclass(frozen=True)
        ... class Size(AdditiveQuestion):
        ...     kind, unit, numbers, sensitivity = "size", Unit.ROW, 1, 1.0
        >>> query = Size(VectorNoise("pure", 0.5), release=ReleaseId("a release"))
        >>> query.promise().mechanism, query.promise().epsilon, query.fields()["vector"].shape
        ('discrete_laplace', 0.5, (1, 1))
    """

    unit: ClassVar[Unit]

    noise: VectorNoise

    @property
    @abstractmethod
    def numbers(self) -> int:
        """How many numbers the vector has."""

    @property
    @abstractmethod
    def sensitivity(self) -> float:
        """How far the vector moves, in the L2 norm, when one unit is replaced; rounding included."""

    def fields(self) -> dict[str, Field]:
        """Return the one field, `vector`: the noisy vector of each draw."""
        return {"vector": within(_LARGEST, self.draws, self.numbers)}

    def mechanism(self) -> AdditiveMechanism:
        """Calibrate the noise on a party's vector. Raises `InputError` for numbers that no noise works with."""
        noise = self.noise
        if noise.kind == "off":
            raise InputError("noise is off: there is nothing to calibrate")
        known = {"dimension": self.numbers}
        return calibrate(noise.kind, sensitivity=self.sensitivity, epsilon=noise.epsilon, delta=noise.delta, **known)

    def _promised(self) -> Guarantee:
        return self.mechanism().guarantee(self.unit, Adjacency.REPLACE)
