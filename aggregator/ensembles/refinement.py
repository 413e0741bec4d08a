"""What becomes of decoded models before they are released."""

from __future__ import annotations

from dataclasses import dataclass

from aggregator.contract.perturbable import Decode
from aggregator.world.public_rows import PublicRows
from federation.features.feature_map import FeatureMap


@dataclass(frozen=True, eq=False)
class Refinement:
    """Nothing becomes of them; a protocol that knows more derives from this class.

    `asked` are the public rows behind the map that parties were asked about. It sees noisy values and public data only.
    """

    asked: PublicRows

    @property
    def feature_map(self) -> FeatureMap:
        """What raw rows pass before a released model."""
        return self.asked.feature_map

    @property
    def checks(self) -> tuple[str, ...]:
        """What was done, in public words, for the ledger."""
        return ()

    def refined(self, decode: Decode) -> Decode:
        """Decodes noisy values to what is released."""
        return decode
