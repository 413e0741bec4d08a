"""What public numbers say of a release before anybody is asked: how loud its noise will be beside all that it can say.

rho is the largest mean of the parties' shares over the expected norm of the noise on it, M eps / (2 D) for pure noise
and M mu / (2 sqrt(D)) for Gaussian, D numbers released about M parties. Measured on 20 data sets with 5 to 1000
parties: of releases with rho below 1, four in ten were more than .01 below the constant answer; between 1 and 4 one in
four; above 8 one in sixty. It is the budget that decides, for every protocol that releases a mean of the parties.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

from aggregator.contract.outlook import USEFUL, Outlook
from aggregator.world.dimensions import SIZES, Spectrum, affordable
from federation.mechanisms.noise import gaussian

_MOST_PARTIES = 10**9
_BEYOND = 1e18  # parties: where noise is so loud that more are needed, there is no point in counting them


@dataclass(frozen=True)
class Aim:
    """A release at `epsilon` with noise "pure" or "gaussian"; `delta` is for Gaussian noise only."""

    noise: str
    epsilon: float
    delta: float

    def signal_to_noise(self, dimension: int, parties: int) -> float:
        """rho of so many numbers about so many parties.

        Examples:
            >>> Aim("pure", epsilon=1.0, delta=0.0).signal_to_noise(dimension=25, parties=100)
            2.0
        """
        if self.noise == "pure":
            return parties * self.epsilon / (2 * dimension)
        return parties * gaussian.mu(self.epsilon, self.delta) / (2 * math.sqrt(dimension))

    def parties_needed(self, classes: int, width: int, parties: int, spectrum: Spectrum | None) -> int:
        """The smallest number of parties from which on rho stays at `USEFUL` or above.

        `width` numbers per class contrast are released about `parties`. With a spectrum the dimensions among them grow
        with the parties (`aggregator.world.dimensions.affordable`), and rho falls where they do.

        Examples:
            >>> Aim("pure", epsilon=1.0, delta=0.0).parties_needed(classes=2, width=25, parties=100, spectrum=None)
            200
        """

        def enough(numbers: int) -> int:
            rho = self.signal_to_noise((classes - 1) * numbers, 1)
            return math.ceil(USEFUL / max(rho, USEFUL / _BEYOND) * (1 - 1e-12))

        if spectrum is None:
            return enough(width)

        def dimensions(parties: int) -> int:
            return affordable(
                self.noise, spectrum, classes=classes, parties=parties, epsilon=self.epsilon, delta=self.delta
            )

        beside = max(0, width - dimensions(parties))
        fewest, most = dimensions(1), dimensions(_MOST_PARTIES)
        for size in sorted({size for size in (*SIZES, most) if fewest <= size <= most}, reverse=True):
            first = bisect_left(range(_MOST_PARTIES), size, lo=1, key=dimensions)
            if size == fewest or enough(size + beside) > first:
                break
        return max(first, enough(size + beside))

    def outlook(
        self, classes: int, width: int, parties: int, spectrum: Spectrum | None, louder: float = 1.0
    ) -> Outlook | None:
        """What is to be said of such a release, whose noise has `louder` times the least deviation; None if nothing."""
        rho = self.signal_to_noise((classes - 1) * width, parties) / louder
        if rho >= USEFUL:
            return None
        return Outlook(rho, math.ceil(louder * self.parties_needed(classes, width, parties, spectrum)))
