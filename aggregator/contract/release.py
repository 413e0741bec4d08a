"""Models that leave the aggregator where it makes the noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Guarantee, NoGuarantee


@dataclass(frozen=True)
class Release:
    """Models that leave the aggregator, one per noise draw, all under one guarantee.

    `weights` (draws, C, d): a row x behind the feature map belongs to class argmax_c <weights[c], x>. `diagnostics`
    say how much of them is signal, from public numbers and from the first draw. Cannot be built without saying what
    it guarantees.
    """

    variant: str
    weights: np.ndarray
    guarantee: Guarantee | NoGuarantee
    diagnostics: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.guarantee, Guarantee | NoGuarantee):
            raise InputError(f"release of '{self.variant}' needs a guarantee, got {self.guarantee!r}")
