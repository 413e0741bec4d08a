"""The worst pair of neighbouring vote sets for a variant: what an end-to-end audit runs the aggregator on."""

from __future__ import annotations

import math

import numpy as np

from aggregator.ensembles.ensemble import Ensemble
from aggregator.ensembles.tally import VoteTally
from aggregator.majority_vote import MajorityVote
from aggregator.soft_vote import SoftVote
from aggregator.world.public import PublicRows
from federation.features import fit
from federation.messages import Submission, Training, VotesQuestion
from federation.privacy.sensitivity import radius

PARTIES = 5  # odd, so that one party can tip a majority

_STAGES = ("unit_norm",)
_ONE_ROW = np.ones((1, 1))
_NINE_ROWS = np.ones((9, 1))
_TWO_ROWS = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)  # their span holds the constant; their reach is 1/sqrt(2)
_FARTHEST_SCORE = 1.2784645427610738  # 1 + W0(1/e), where z sigma(-z) is largest: see `radius`


def neighbours(chosen: SoftVote | MajorityVote) -> tuple[Ensemble, Ensemble]:
    """Two ensembles of 5 parties and 2 classes that differ in one unit only, as far as one unit can matter.

    One party flips all its votes; the others are split evenly, so that the flipped votes decide every majority. With
    `protect: party_and_auxiliary_row` the only auxiliary row turns round instead, and all votes on it stay.
    """
    if chosen.protect == "party_and_auxiliary_row":
        everybody = np.ones(PARTIES, dtype=np.uint8)
        return _ensemble(_ONE_ROW, everybody), _ensemble(-_ONE_ROW, everybody)
    rows = _rows(chosen)
    before = np.arange(PARTIES, dtype=np.uint8) % 2
    after = before.copy()
    after[0] = 1
    return _ensemble(rows, before), _ensemble(rows, after)


def _rows(chosen: SoftVote | MajorityVote) -> np.ndarray:
    """The auxiliary rows on which flipped votes move what is released furthest."""
    if chosen.perturb == "votes":
        return _NINE_ROWS  # one label says little, and the count of a few equal ones much
    if isinstance(chosen, MajorityVote) and _diameter_is_smaller(chosen):
        # Minimisers of the greatest norm, which flipped labels turn round.
        cosine = min(1.0, _FARTHEST_SCORE / radius(chosen.regularisation, 2))
        sine = math.sqrt(1 - cosine**2)
        return np.array([[cosine, sine], [cosine, -sine]])
    if chosen.perturb == "statistic" or chosen.sensitivity == "public_features":
        return _TWO_ROWS  # moved by the whole bound
    return _ONE_ROW


def _diameter_is_smaller(chosen: MajorityVote) -> bool:
    """Whether the claim rests on the ball that holds all minimisers, and not on a party's reach."""
    reach = {"diameter": 1.0, "public_features": math.sqrt(0.5)}.get(chosen.sensitivity, 0.0)
    return 2 * radius(chosen.regularisation, 2) * chosen.regularisation < reach


def _ensemble(rows: np.ndarray, votes: np.ndarray) -> Ensemble:
    """Parties that vote (P,) the same on every row."""
    public = PublicRows(fit(_STAGES, rows), rows, _STAGES)
    question = VotesQuestion(Training(public.feature_map, 2, {}, 0), rows)
    tally = VoteTally(question, PARTIES)
    cast = np.repeat(votes[:, None], len(rows), axis=1)
    tally.add(Submission(question.kind, np.arange(PARTIES), {"votes": cast}))
    return Ensemble(public, tally)
