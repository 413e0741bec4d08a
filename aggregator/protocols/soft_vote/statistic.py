"""Statistic perturbation: noise on all that a risk takes from the votes; the model is post-processing."""

from __future__ import annotations

import numpy as np

from aggregator.contract.perturbable import Decoder, Perturbable
from aggregator.ensembles.decoding import PUBLIC_ROWS, VOTE_ASSUMPTIONS, VOTE_CHECKS
from aggregator.ensembles.ensemble import Ensemble
from aggregator.world.public_rows import Coordinates
from federation.contract.guarantee import Assumption, Check
from federation.mechanisms.accounting import sensitivity
from federation.numerics.rows import contrasts

_RANGE = Assumption("the statistic is projected to the range of the public rows before noise", Check.ENFORCED)


def perturb_statistic(ensemble: Ensemble, coordinates: Coordinates, decoder: Decoder) -> Perturbable:
    """Noise on the votes' mean operator in public coordinates Y of the auxiliary rows.

    The value is B' A' Y / N, shape (C-1, r) flattened: B are class contrasts, A the label shares. One replaced party
    moves it by at most sqrt(2) reach / M, and what rounding adds is charged. Whitened, the reach is at most 1
    whatever the norms of the rows; isotropic, it is that of the features, and the noise has the same size in all of
    their directions. Directions outside the range of the rows are not released at all.
    """
    basis = contrasts(ensemble.classes)
    value = basis.T @ (ensemble.shares().T @ coordinates.rows) / len(coordinates.rows)
    return Perturbable(
        value.ravel(),
        sensitivity.statistic(ensemble.parties, coordinates.reach) + 2 * coordinates.rounding(ensemble.classes),
        decoder.decode,
        (*VOTE_ASSUMPTIONS, PUBLIC_ROWS, _RANGE),
        VOTE_CHECKS,
        largest_norm=coordinates.reach * float(np.sqrt(1 - 1 / ensemble.classes)),
        scores=decoder.scores,
    )
