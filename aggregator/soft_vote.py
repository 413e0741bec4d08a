"""Protocol `soft_vote` (Hamm, Cao and Belkin 2016, Alg. 2): parties vote, the ensemble's shares are the labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from aggregator.ensemble import Ensemble
from aggregator.perturbation import Perturbable, perturb_output, perturb_statistic
from aggregator.votes import VoteProtocol
from federation.errors import InputError

PUBLISHED_REGULARISATION = 1e-4  # of Hamm et al.'s experiments


@dataclass(frozen=True)
class SoftVote(VoteProtocol):
    """Parties vote on public rows; shares of votes are soft labels; noise goes to their sufficient statistic.

    The defaults need no tuning and were the most accurate at every epsilon measured.

    perturb: `statistic` adds noise to the votes' mean operator in whitened public coordinates, `output` to the
        minimiser of the weighted risk, as published.
    sensitivity: of `output`: `published`, `tight` (exact for the loss) or `diameter` (also bounded by lam alone).
    shape: of `statistic`: `whitened` (noise shaped like the public rows' second moment).
    decoder: of `statistic`: `least_squares` (closed form) or `erm` (the weighted risk).
    noise: `pure` (L2-Gamma), `gaussian` (discrete Gaussian, uses delta) or `off` (NON-PRIVATE).
    regularisation: lam of `output` (default 1e-4) or of the `erm` decoder (default: the expected noise norm).
    shrinkage: of `least_squares`, in units of the mean variance, >= 0.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    perturb: Literal["statistic", "output"] = "statistic"
    sensitivity: Literal["published", "tight", "diameter"] = "tight"
    shape: Literal["whitened"] = "whitened"
    decoder: Literal["least_squares", "erm"] = "least_squares"
    noise: Literal["pure", "gaussian", "off"] = "pure"
    regularisation: float | None = None
    shrinkage: float = 0.1

    def __post_init__(self) -> None:
        if self.regularisation is not None and not 0 < self.regularisation < float("inf"):
            raise InputError(f"regularisation must be a positive number, got {self.regularisation}")
        if not 0 <= self.shrinkage < float("inf"):
            raise InputError(f"shrinkage must be a number >= 0, got {self.shrinkage}")
        if self.perturb == "output" and (self.decoder, self.shrinkage) != (SoftVote.decoder, SoftVote.shrinkage):
            raise InputError("decoder and shrinkage belong to perturb: statistic; remove them or change perturb")
        if self.perturb == "statistic" and self.sensitivity != SoftVote.sensitivity:
            raise InputError("sensitivity belongs to perturb: output; remove it or change perturb")
        if (self.perturb, self.decoder) == ("statistic", "least_squares") and self.regularisation is not None:
            raise InputError("regularisation belongs to perturb: output or decoder: erm; remove it or change those")

    def prepare(self, ensemble: Ensemble) -> Perturbable:
        """The vector to perturb, with its sensitivity and decoder."""
        if self.perturb == "output":
            return perturb_output(ensemble, "soft", self.sensitivity, self.regularisation or PUBLISHED_REGULARISATION)
        return perturb_statistic(ensemble, self.decoder, self.shrinkage, self.regularisation)
