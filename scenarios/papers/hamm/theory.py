"""Theory of Hamm et al. 2016 as numbers: printed sensitivities beside those charged and found, Lemma 2 and Theorem 4.

Sensitivities are in units of 1/(M lam), and those of majority votes in units of 1/lam. They are for exact minimisers on
rows of norm at most 1. Lemma 2 and Theorem 4 state how risks approach their limits as the number of parties grows.

`digit_votes` is an ensemble on bundled data. Its parties have five handwritten digits each, and tell even from odd
digits.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from aggregator.collectors.vectors import parameter_average
from aggregator.contract.expectations import excess_risk_bound
from aggregator.ensembles.worst_case import farthest_rows, flat_risk
from federation.contract.randomness import NoiseBits, generator
from federation.mechanisms.accounting.sensitivity import majority_vote, soft_vote
from federation.mechanisms.noise.additive import calibrate
from federation.numerics.erm import fit_labels, risk_minimiser
from federation.numerics.rows import Floats, Integers
from scenarios.data.catalogue import load
from scenarios.reproductions.paper import EXACT, Observation, both

REGULARISATIONS = ("0.0001", "0.01", "1", "100")
PARTIES, CLASSES, AUXILIARY = 1000, 6, 1352  # those of Fig. 2
FEW_PARTIES = 101  # with digits; odd, so that no vote is tied
SPLITS = 3
_ANGLES = 24  # of a search for the farthest minimisers


def _in_parties(bound: Callable[..., float], classes: int, form: str, lam: float, **known: int) -> float:
    return bound(form, regularisation=lam, parties=PARTIES, classes=classes, **known) * lam * PARTIES


def _alone(bound: Callable[..., float], classes: int, form: str, lam: float) -> float:
    return bound(form, regularisation=lam, parties=PARTIES, classes=classes) * lam


def all_votes_turn(lam: float) -> float:
    """Two classes: one party tips every majority from one class to the other, on rows of the longest minimiser."""
    rows = farthest_rows(lam)
    sides = [risk_minimiser(rows, np.tile(np.eye(2)[label], (2, 1)), lam, TOLERANCE) for label in (0, 1)]
    return float(np.linalg.norm(sides[0] - sides[1])) * lam


def all_classes_turn(lam: float) -> float:
    """More classes: the same, on the pair of rows of all that were tried on which minimisers are farthest apart."""
    return max(_apart(rows, lam) for rows in _pairs())


def _apart(rows: Floats, lam: float) -> float:
    sides = [fit_labels(rows, np.full(2, label), CLASSES, lam, TOLERANCE) for label in (0, 1)]
    return float(np.linalg.norm(sides[0] - sides[1])) * lam


def all_rows_turn(lam: float) -> float:
    """Parameters, more classes: a party's rows turn round, x to -x, and with them its minimiser."""
    labels = np.zeros(2, dtype=np.int64)
    return max(2 * float(np.linalg.norm(fit_labels(rows, labels, CLASSES, lam, TOLERANCE))) for rows in _pairs()) * lam


def _pairs() -> Iterator[Floats]:
    """Pairs of rows of norm 1 at different angles, close to opposite ones in steps that shrink."""
    for cosine in np.geomspace(0.01, 1.0, _ANGLES):
        sine = math.sqrt(1 - cosine**2)
        yield np.array([[cosine, sine], [cosine, -sine]])


def one_party_turns(lam: float, classes: int) -> float:
    """Return how far one of M parties moves the minimiser by turning its votes.

    It does so on a single row, or where the risk is so flat that its minimiser moves far.
    """
    single = _one_of(np.ones((1, 1)), np.array([1]), np.array([0]), lam, classes, PARTIES)
    if (flat := flat_risk(lam * (1 if classes == 2 else 0.5))) is None:  # softmax of two classes has half of lam
        return single
    others = np.r_[np.ones(flat.copies, int), np.zeros(flat.copies, int), 1]
    there = np.r_[np.zeros(2 * flat.copies, int), 1]
    return max(single, _one_of(flat.rows, others, there, lam, classes, flat.parties))


def _one_of(rows: Floats, others: Integers, there: Integers, lam: float, classes: int, parties: int) -> float:
    """All parties vote as `others` do, but one, for class 1 here and as `there` is there."""
    known = np.eye(classes)
    shares = [((parties - 1) * known[others] + known[vote]) / parties for vote in (np.ones_like(others), there)]
    here, moved = (risk_minimiser(rows, side, lam, TOLERANCE) for side in shares)
    return float(np.linalg.norm(here - moved)) * lam * parties


def one_party_and_one_row_turn(lam: float) -> float:
    """Section 4.5: on N equal rows one party turns its votes, and one row turns round with all votes on it kept."""
    rows = np.ones((AUXILIARY, 1))
    turned = rows * np.where(np.arange(AUXILIARY) == 0, -1.0, 1.0)[:, None]
    known, half = np.eye(2), PARTIES // 2
    here = np.tile(half / PARTIES * known[0] + (1 - half / PARTIES) * known[1], (AUXILIARY, 1))
    there = here + (known[0] - known[1]) / PARTIES
    here[0] = there[0] = known[1]
    sides = risk_minimiser(rows, here, lam, TOLERANCE), risk_minimiser(turned, there, lam, TOLERANCE)
    return float(np.linalg.norm(sides[0] - sides[1])) * lam * PARTIES


@dataclass(frozen=True)
class Theorem:
    """A bound by form and lam, the worst pair that was found, and which minimiser of digits it is about, if any."""

    bound: Callable[[str, float], float]
    worst: Callable[[float], float]
    digits: str = ""


THEOREMS = {
    "Theorem 1: vote": Theorem(partial(_alone, majority_vote, 2), all_votes_turn, digits="vote"),
    "Theorem 3: soft": Theorem(partial(_in_parties, soft_vote, 2), partial(one_party_turns, classes=2), digits="soft"),
    "Section 4.5: soft, one row": Theorem(
        partial(_in_parties, partial(soft_vote, auxiliary_rows=AUXILIARY), 2), one_party_and_one_row_turn
    ),
    "B.2: vote, 6 classes": Theorem(partial(_alone, majority_vote, CLASSES), all_classes_turn),
    "B.3: soft, 6 classes": Theorem(partial(_in_parties, soft_vote, CLASSES), partial(one_party_turns, classes=6)),
    "B.4: avg, 6 classes": Theorem(partial(_in_parties, parameter_average, CLASSES), all_rows_turn),
    "Pathak et al.: avg": Theorem(partial(_in_parties, parameter_average, 2), all_votes_turn, digits="avg"),
}


def sensitivities(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Bounds and worst cases exactly, and what one of 101 parties with five digits each can do to a real ensemble."""
    for x in REGULARISATIONS:
        lam = float(x)
        for setting, theorem in THEOREMS.items():
            published, least = theorem.bound("published", lam), theorem.bound("diameter", lam)
            yield from both(setting, "bound", x, EXACT, published, least)
            yield Observation(setting, "worst case", "published", x, EXACT, theorem.worst(lam))
        for split in range(SPLITS):
            moved = moved_by_one(lam, split)
            for setting, theorem in THEOREMS.items():
                if theorem.digits:
                    yield Observation(setting, "digits", "published", x, split, moved[theorem.digits])


def moved_by_one(lam: float, split: int) -> dict[str, float]:
    """How far a party of digits moves the minimisers by turning all its votes, and its parameters by all its labels."""
    known = digit_votes(FEW_PARTIES, lam, split)
    votes = known.votes(known.public)
    turned = votes.copy()
    turned[:, 0] = 1 - turned[:, 0]
    shares = [side.mean(axis=1) for side in (votes, turned)]
    opposite = fit_labels(known.rows[0], 1 - known.labels[0], 2, lam, TOLERANCE)

    def apart(sides: list[Floats]) -> float:
        one, other = (minimiser(known.public, share, lam) for share in sides)
        return float(np.linalg.norm(one - other)) * lam

    return {
        "soft": apart(shares) * FEW_PARTIES,
        "vote": apart([(share > 0.5).astype(np.float64) for share in shares]),
        "avg": float(np.linalg.norm(known.weights[0] - opposite)) * lam,
    }


SIZES = (101, 301, 901)  # odd, so that no vote is tied
OTHERS = 2002  # parties whose shares of votes stand for those of infinitely many
REGULARISATION, EPSILON = 0.01, 1.0
RISK_SPLITS, DRAWS = 6, 20
_SEED = 2016


def settings() -> list[str]:
    """A row of the table for each number of parties."""
    return [f"{parties} parties" for parties in SIZES]


def risk(weights: Floats, rows: Floats, shares: Floats) -> Floats:
    """Mean logistic loss of weights (..., d) on rows (N, d) with shares (N,) of the class 1; useless ones have ln 2."""
    scores = weights @ rows.T
    return np.asarray((np.logaddexp(0.0, scores) - shares * scores).mean(axis=-1))


def risks(quick: bool, data_dir: Path | None) -> Iterator[Observation]:
    """Risks of even and odd digits, at epsilon 1 and lam 0.01: means over noise, beyond the least risk there is.

    A risk is that of the shares of other parties' votes on rows that nobody learned from. A quick run has one split.
    """
    for split in range(1 if quick else RISK_SPLITS):
        known = digit_votes(SIZES[-1] + OTHERS, REGULARISATION, split)
        public, tested = known.votes(known.public), known.votes(known.tested)
        limit = tested[:, SIZES[-1] :].mean(axis=1)
        best = minimiser(known.tested, limit, REGULARISATION)
        least = risk(best, known.tested, limit)
        for setting, parties in zip(settings(), SIZES, strict=True):
            shares = public[:, :parties].mean(axis=1)
            bits = NoiseBits(_SEED, setting, trial=split)
            labels = {"soft": (soft_vote, shares), "vote": (majority_vote, (shares > 0.5).astype(np.float64))}
            for series, (sensitivity, chosen) in labels.items():
                reach = sensitivity("published", regularisation=REGULARISATION, parties=parties, classes=2)
                noise = calibrate("pure", sensitivity=reach, dimension=len(best), epsilon=EPSILON)
                noisy = noise.release(minimiser(known.public, chosen, REGULARISATION), bits, DRAWS)
                beyond = float(risk(noisy, known.tested, limit).mean() - least)
                yield Observation(setting, series, "published", "", split, beyond)
            from_limit = abs(float(risk(best, known.tested, tested[:, :parties].mean(axis=1)) - least))
            yield Observation(setting, "gap of Lemma 2", "published", "", split, from_limit)
            bound = excess_risk_bound(
                features=len(best),
                regularisation=REGULARISATION,
                parties=parties,
                epsilon=EPSILON,
                rows=PUBLIC,
                best_norm=float(np.linalg.norm(best)),
            )
            yield Observation(setting, "bound for soft", "published", "", split, bound)


PUBLIC, ROWS = 430, 5  # auxiliary rows, and those of each party
TOLERANCE = 1e-12  # of gradients: minimisers are exact but for rounding


@dataclass(frozen=True, eq=False)
class DigitVotes:
    """What M parties hold and have learned, and rows that they know nothing of: `public` and `tested`, (N, d) each.

    All rows have norm 1. `rows` are (M, 5, d), `labels`, 1 for odd digits, (M, 5) and `weights` (M, d).
    """

    public: Floats
    tested: Floats
    rows: Floats
    labels: Integers
    weights: Floats

    def votes(self, rows: Floats) -> Floats:
        """Return the votes of every party for the class 1, odd digits, on rows (N, d): zeros and ones (N, M)."""
        return (rows @ self.weights.T > 0).astype(np.float64)


def digit_votes(parties: int, regularisation: float, split: int) -> DigitVotes:
    """Rows are divided anew for every split; parties draw theirs independently, so that some are of several."""
    table, random = load("digits"), generator(PUBLIC, "digits", trial=split)
    features = np.asarray(table.blocks[0], dtype=np.float64)
    rows, labels = features / np.linalg.norm(features, axis=1, keepdims=True), np.asarray(table.labels) % 2
    public, tested, pool = np.split(random.permutation(len(rows)), [PUBLIC, 2 * PUBLIC])
    held = random.choice(pool, (parties, ROWS))
    weights = np.array([fit_labels(rows[own], labels[own], 2, regularisation, TOLERANCE) for own in held])
    return DigitVotes(rows[public], rows[tested], rows[held], labels[held], weights)


def minimiser(rows: Floats, shares: Floats, regularisation: float) -> Floats:
    """Return the minimiser of the risk on rows (N, d) with shares (N,) of the class 1."""
    return risk_minimiser(rows, np.column_stack([1 - shares, shares]), regularisation, TOLERANCE)
