"""The label provider's side of a two-agent exchange: one private message, for a learner who knows the rows."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Assumption, Check, Guarantee, Keeper, Unit
from federation.contract.randomness import NoiseBits
from federation.contract.validation import apart
from federation.features.steps import finite_rows
from federation.mechanisms.noise.mechanism import require_positive
from federation.mechanisms.sums.row_sums import SumNoise, SumNoiseKind
from federation.mechanisms.sums.row_sums import calibrate_row_sums as calibrate
from federation.numerics.rows import Floats, within_norm

LongRows = Literal["refuse", "cut"]

_LONGER = 1e-9  # relative: what rounding may do to rows of norm 1

_PUBLIC_ROWS = Assumption("features are public: only labels are protected", Check.DECLARED, Keeper.HOLDER)


@dataclass(frozen=True, eq=False)
class PrivateMoment:
    """What a labels provider sends: `moment` (d,), a noisy mean of y x over `rows` rows, and the `noise` on the sum.

    With the rows without labels, cut as they were, it is all that `MeanOperatorClassifier.fit_moment` needs.
    """

    moment: Floats
    rows: int
    noise: SumNoise

    @property
    def noise_variance(self) -> float:
        """Expected squared norm of the noise on the mean, a public number."""
        return (self.noise.noise_norm() / self.rows) ** 2

    @property
    def guarantee(self) -> Guarantee:
        """What the message promises for every label."""
        text = "rows are of norm 1 at most, and of the L1 bound where the noise makes use of one"
        return self.noise.guarantee(Unit.LABEL, Adjacency.REPLACE, (_PUBLIC_ROWS, Assumption(text, Check.ENFORCED)))


def release_moment(
    rows: Floats,
    labels: Floats,
    *,
    epsilon: float,
    delta: float = 0.0,
    noise: SumNoiseKind = "auto",
    l1_bound: float | None = None,
    long_rows: LongRows = "refuse",
    bits: NoiseBits | None = None,
) -> PrivateMoment:
    """The mean of y x with noise that hides every label (Patrini et al. 2015, Algorithms 2 and 3).

    Args:
        rows: public features (n, d), a constant one among them where an intercept is wanted.
        labels: class codes (n,), 1 for y = 1 and 0 for y = -1.
        epsilon, delta, noise, l1_bound: as `federation.mechanisms.sums.row_sums.calibrate_row_sums`.
        long_rows: rows beyond norm 1, or the L1 bound, are refused, or cut to it; the learner must do the same.
        bits: of the noise; from the operating system by default. They must serve no other release.

    Raises `InputError` for rows that are not finite or too long, and for labels that are not 0 or 1.

    Examples:
        >>> rng = np.random.default_rng(1)
        >>> rows = rng.normal(size=(500, 2)) / 10
        >>> labels = (rows[:, 0] > 0).astype(int)
        >>> sent = release_moment(rows, labels, epsilon=1.0, bits=NoiseBits(1, "example"), long_rows="cut")
        >>> sent.moment.round(3), sent.noise_variance
        (array([0.071, 0.002]), 9.6e-05)
        >>> sent.guarantee.epsilon, str(sent.guarantee.unit)
        (1.0, 'label')
    """
    rows, labels = finite_rows(rows, "rows"), np.asarray(labels)
    if long_rows not in get_args(LongRows):
        raise InputError(f"long_rows must be refuse or cut, got {long_rows!r}")
    if len(rows) == 0 or labels.shape != (len(rows),):
        raise InputError(f"labels must be one for each of at least one row, got {labels.shape} for {len(rows)} rows")
    if not np.isin(labels, (0, 1)).all():
        wrong = labels[~np.isin(labels, (0, 1))][0]
        raise InputError(f"labels must be 0 or 1, got {wrong!r}; code the class with y = 1 as 1 and the other as 0")
    if l1_bound is not None:
        require_positive("l1_bound", l1_bound)
    cut = within_norm(rows, l1_bound)
    longer = np.linalg.norm(rows - cut, axis=1) > _LONGER * np.linalg.norm(cut, axis=1)
    if long_rows == "refuse" and longer.any():
        first = int(np.argmax(longer))
        norm, bound = apart(float(np.linalg.norm(rows[first])), 1)
        found = f"norm {norm}"
        if l1_bound is not None:
            norm, most = apart(float(np.abs(rows[first]).sum()), l1_bound)
            found, bound = f"{found} and L1 norm {norm}", f"{bound} and L1 norm at most {most}"
        raise InputError(
            f"rows must have norm at most {bound}, and row {first} (counted from 0) has {found}; rescale all rows by "
            "public numbers, or choose long_rows='cut'"
        )
    added = calibrate(noise, dimension=rows.shape[1], epsilon=epsilon, delta=delta, l1_bound=l1_bound, rows=len(rows))
    total = (2.0 * labels - 1.0) @ cut
    [noisy] = added.release(total, bits or NoiseBits(None, "mean operator"))
    return PrivateMoment(noisy / len(rows), len(rows), added)
