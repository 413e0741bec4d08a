"""What follows from a noisy sum over all rows of all parties, however it was added up."""

from dataclasses import dataclass

import numpy as np

from aggregator.collectors.collectors import Secure, Summed
from federation.queries.row_sums import SummedQuestion


@dataclass(frozen=True, eq=False)
class RowTotals:
    """Responses to a question about all rows, added up, and what follows from their sum and number of rows."""

    question: SummedQuestion
    collected: Summed | Secure

    @property
    def rows(self) -> float:
        """Rows of the parties that answered."""
        return float(self.collected.total("size"))

    @property
    def moments(self) -> np.ndarray:
        """Means over all rows of what is summed, as estimates of the mean of y x, one per noise draw, (draws, d)."""
        return self.collected.total("sums") / self.rows

    @property
    def noise_variance(self) -> float:
        """Variance in each entry of an estimate of noise on sums: of all shares, or of all parties' own noise."""
        return self.collected.variance / self.rows**2

    @property
    def response_variance(self) -> float:
        """What randomised response adds: times the mean of x x' it is the covariance of the error of an estimate."""
        response = self.question.label_noise()
        rows = self.collected.counted("responding_rows")
        return rows * response.label_variance / self.rows**2 if response else 0.0
