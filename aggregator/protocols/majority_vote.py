"""Protocol `majority_vote` (Hamm, Cao and Belkin 2016, Alg. 1): the majority's class is the label."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from aggregator.contract.protocol import Rule, refuse_public_reach, require_positive
from aggregator.contract.session import Perturbable
from aggregator.contract.worst_case import TrustedWorstCase
from aggregator.ensembles.output import PUBLISHED_REGULARISATION, Ensemble, perturb_output
from aggregator.ensembles.votes import VoteProtocol
from aggregator.ensembles.worst_case import of_minimisers
from aggregator.trial.plan import PublicNumbers

_RUNS = 400_000  # of an audit


@dataclass(frozen=True)
class MajorityVote(VoteProtocol):
    """Parties vote on public rows; the majority is the label; noise goes to the minimiser.

    One party may tip every label, so the sensitivity does not fall with the number of parties.

    perturb: what gets the noise: always the minimiser, `output`; `soft_vote` has other choices.
    sensitivity: `published`, `tight` (exact for the loss), `diameter` (also bounded by lam alone) or
        `public_features` (also by how far votes can move these public rows).
    noise: `pure` (L2-Gamma), `gaussian` (discrete Gaussian, uses delta) or `off` (NON-PRIVATE).
    protect: `party`, or `party_and_auxiliary_row`: one auxiliary row may change as well.
    regularisation: lam, positive.
    """

    why_default: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "sensitivity: diameter",
            "it is the least of those that hold for all rows: one party may tip every label",
            "by computation: never above tight or published; a reference (Hamm et al. 2016, Alg. 1) that is tuned on "
            "no data",
        ),
    )

    perturb: Literal["output"] = "output"
    sensitivity: Literal["published", "tight", "diameter", "public_features"] = "diameter"
    noise: Literal["pure", "gaussian", "off"] = "pure"
    protect: Literal["party", "party_and_auxiliary_row"] = "party"
    regularisation: float = PUBLISHED_REGULARISATION

    def __post_init__(self) -> None:
        require_positive("regularisation", self.regularisation)
        refuse_public_reach(self.sensitivity, self.protect)

    def worst_case(self, units: int, public: PublicNumbers) -> TrustedWorstCase:
        """One party in five tips every majority."""
        known = {"sensitivity": self.sensitivity, "protect": self.protect}
        return of_minimisers(units, _RUNS, labels="majority", regularisation=self.regularisation, **known)

    def prepare(self, ensemble: Ensemble) -> Perturbable:
        """The vector to perturb, with its sensitivity and decoder."""
        return perturb_output(ensemble, "majority", self.sensitivity, self.regularisation, self.protect)
