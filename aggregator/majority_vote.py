"""Protocol `majority_vote` (Hamm, Cao and Belkin 2016, Alg. 1): the majority's class is the label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from aggregator.ensemble import Ensemble
from aggregator.perturbation import Perturbable, perturb_output
from aggregator.soft_vote import PUBLISHED_REGULARISATION
from aggregator.votes import VoteProtocol
from federation.errors import InputError


@dataclass(frozen=True)
class MajorityVote(VoteProtocol):
    """Parties vote on public rows; the majority is the label; noise goes to the minimiser.

    One party may tip every label, so the sensitivity does not fall with the number of parties.

    sensitivity: `published`, `tight` (exact for the loss) or `diameter` (also bounded by lam alone).
    noise: `pure` (L2-Gamma), `gaussian` (discrete Gaussian, uses delta) or `off` (NON-PRIVATE).
    regularisation: lam, positive.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    perturb: Literal["output"] = "output"
    sensitivity: Literal["published", "tight", "diameter"] = "diameter"
    noise: Literal["pure", "gaussian", "off"] = "pure"
    regularisation: float = PUBLISHED_REGULARISATION

    def __post_init__(self) -> None:
        if not 0 < self.regularisation < float("inf"):
            raise InputError(f"regularisation must be a positive number, got {self.regularisation}")

    def prepare(self, ensemble: Ensemble) -> Perturbable:
        """The vector to perturb, with its sensitivity and decoder."""
        return perturb_output(ensemble, "majority", self.sensitivity, self.regularisation)
