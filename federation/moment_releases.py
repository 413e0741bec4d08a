"""What an answer about the mean operator promises: parties calibrate by it, and the aggregator writes it down."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from federation.bag_releases import OFF
from federation.entropy import with_entropy
from federation.guarantee import Adjacency, Assumption, Check, Guarantee, NoGuarantee, Unit
from federation.moment_messages import MomentQuestion
from federation.privacy.moments.calibration import SumNoise, calibrate
from federation.row_premises import holding, protected

_SHORT_ROWS = Assumption(
    "rows behind the public feature map, their constant feature included, are cut to norm 1", Check.ENFORCED
)
_PUBLIC_FEATURES = Assumption("features are public: only labels are protected", Check.DECLARED)
_PUBLIC_EVEN_TERM = Assumption(
    "how many rows a party has is public; no private row is used but in the sum that gets the noise", Check.ENFORCED
)


def moment_noise(question: MomentQuestion) -> SumNoise:
    """The noise on the sum of one party, or its share of the noise on the sum over parties. Raises `InputError`."""
    known = dict(question.noising.mechanism)
    return _noise(question.feature_map.dimension, question.most, question.contributors, tuple(sorted(known.items())))


def moment_guarantee(question: MomentQuestion) -> Guarantee | NoGuarantee:
    """What an answer promises, or with contributors the sum of all. Raises `InputError` as `moment_noise`."""
    if question.noising.mechanism["noise"] == OFF:
        return NoGuarantee("noise is off")
    unit = protected(question.protect)
    own = _PUBLIC_FEATURES if unit is Unit.LABEL else _PUBLIC_EVEN_TERM
    promised = moment_noise(question).guarantee(unit, Adjacency.REPLACE, (*holding(unit), own, _SHORT_ROWS))
    return with_entropy(promised, question.noising)


@lru_cache  # all parties of a release have the same
def _noise(dimension: int, most: int, contributors: int, mechanism: tuple[tuple[str, Any], ...]) -> SumNoise:
    known = dict(mechanism)
    return calibrate(known.pop("noise"), dimension=dimension, rows=most, contributors=contributors, **known)
