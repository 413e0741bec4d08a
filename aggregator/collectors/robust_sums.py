"""Robust sums of the responses of all parties: scores along suspicious directions are clipped once all have come.

`gated` clips responses along directions in which they spread more than their noise can. Honest responses do not spread
so. A coalition that shifts a mean must spread responses along some direction (Diakonikolas et al. 2017). The noise of
honest responses is public, and what this noise explains is left alone.

A gate keeps honest parties that differ. Nothing is clipped where the middle half of the responses spreads further than
noise. A party of more than the middle weight may differ by as many times more: a difference that noise hides at most
parties may be seen at a large one.

`GatedSum` keeps the responses until all have come. `Robustness` are the settings, and `Changes` counts the clipped
responses for the ledger.
"""

from collections.abc import Iterable
from dataclasses import astuple, dataclass

import numpy as np

from federation.numerics.rows import Booleans, Floats, Integers

# Of the second moment of vectors of norm 1, in a direction: what one row adds to the variance of honest sums.
_SAMPLED = 0.3


@dataclass(frozen=True)
class Robustness:
    """How answers that are private one by one are kept from moving a sum further than honest ones.

    bounded: they are scaled to what an honest one exceeds with probability 1e-6 at most, and clipped along directions
        in which all of them spread more than noise.
    alike: parties' rows are declared to be drawn alike, so that sums may differ by noise and chance only.
    """

    bounded: bool = True
    alike: bool = False


BOUNDED = Robustness()


class GatedSum:
    """Answers (draws, D) of K parties, kept until all have come, to clip what `gated` finds among them.

    With fewer than 8 parties or more than 2^23 numbers, and more than 512 numbers of both a party and a draw, nothing
    is kept and nothing clipped. All these are public numbers.
    """

    def __init__(self, parties: int, draws: int, width: int) -> None:
        fits = parties >= LEAST_PARTIES and parties * draws * width <= MOST_NUMBERS
        self.kept = fits and min(parties, width) <= MOST_DIRECTIONS
        self._ids: list[Integers] = []
        self._answers: list[Floats] = []
        self._weights: list[Floats] = []
        self._shape = (draws, width)

    def keep(self, parties: Integers, answers: Floats, weights: Floats) -> None:
        """Answers (P, draws, D) of parties (P,) whose honest ones are in proportion to `weights` (P,), above 0."""
        if self.kept:
            self._ids.append(parties)
            self._answers.append(answers)
            self._weights.append(weights)

    def correction(self, variance: float, longest: float, *, alike: bool) -> tuple[Floats, Integers]:
        """What to add to the sum of all answers (draws, D), and the ids of the parties of whom something was clipped.

        `variance` is that of the noise of one answer in each entry. Parties that are `alike` differ by the chance of
        drawing their rows, too, each of which adds a vector of norm `longest` to an answer; weights are then numbers of
        rows. The same in whichever order answers came.
        """
        nothing = np.zeros(self._shape), np.zeros(0, dtype=np.int64)
        if not self._ids:
            return nothing
        ids = np.concatenate(self._ids)
        order = np.argsort(ids)
        if len(order) < LEAST_PARTIES or variance <= 0:
            return nothing
        answers, rows = np.concatenate(self._answers)[order], np.concatenate(self._weights)[order]
        if alike:
            variance += _SAMPLED * float(np.median(rows)) * longest**2
        moved, clipped = np.zeros(self._shape), np.zeros(len(ids), dtype=bool)
        for draw in range(self._shape[0]):
            found, own = gated(answers[:, draw], rows / rows.mean(), variance)
            moved[draw] = (found[own] - answers[own, draw]).sum(axis=0)
            clipped |= own
        return moved, ids[order][clipped]


@dataclass(frozen=True)
class Changes:
    """How many answers came, and how many of them were `scaled` and `clipped`."""

    answered: int
    scaled: int
    clipped: int

    @staticmethod
    def of(several: "Iterable[Changes | None]") -> tuple[str, ...]:
        """All together as a ledger puts it; nothing where answers are summed as they come.

        Examples:
            >>> Changes.of([Changes(20, 1, 0), Changes(20, 0, 2)])
            ('of 40 answers 1 scaled to what honest ones reach, 2 clipped where all spread more than noise',)
            >>> Changes.of([None])
            ()
        """
        known = [one for one in several if one is not None]
        if not known:
            return ()
        answered, scaled, clipped = (sum(column) for column in zip(*map(astuple, known), strict=True))
        return (
            f"of {answered} answers {scaled} scaled to what honest ones reach, {clipped} clipped where all spread more "
            "than noise",
        )


LEAST_PARTIES = 8  # of fewer no middle half tells anything
MOST_NUMBERS = 2**23  # of all answers together: 64 MiB are kept until a question closes
MOST_DIRECTIONS = 512  # of answers: the work grows with the cube
_EDGE = 1.1  # of the largest variance that noise alone shows
_UNLIKE = 2.0  # deviations of noise: where the middle half spreads further, parties differ
_KEPT = 1.5  # deviations from the median that a score may lie
_MAD = 1.4826  # of normal scores: deviation over the median of their distances to the median
_AGAIN, _MOST_ROUNDS = 3, 100  # times the number of directions, and in all: a coalition of m parties spans m of them


def gated(answers: Floats, weights: Floats, variance: float) -> tuple[Floats, Booleans]:
    """Answers (K, D) with scores clipped, and which answers those are, (K,).

    An honest answer is its weight (K,), 1 on average and above 0, times one vector, more or less, and noise of this
    `variance` > 0 in each entry. Equal arguments give equal bits on one machine.

    Examples:
        >>> noise = np.random.default_rng(0).normal(size=(50, 4))
        >>> noise[0] = [0.0, 30.0, 0.0, 0.0]
        >>> found, clipped = gated(noise, np.ones(50), 1.0)
        >>> int(clipped.sum()), found[0].round(1)
        (3, array([-0. ,  1.7, -0.1, -0.1]))
    """
    centre = weights[:, None] * _median(answers / weights[:, None], weights)
    shares = np.maximum(weights / np.median(weights), 1.0)
    residuals, changed = answers - centre, np.zeros(len(answers), dtype=bool)
    count, width = answers.shape
    edge = _EDGE * variance * (1 + np.sqrt(width / count)) ** 2
    for _ in range(min(_AGAIN * min(width, count), _MOST_ROUNDS)):
        clipped = _clip_one(residuals, edge, variance, shares)
        if clipped is None:
            break
        changed |= clipped
    return np.where(changed[:, None], residuals + centre, answers), changed


def _median(ratios: Floats, weights: Floats) -> Floats:
    """Of each column of (K, D) the c with the least sum of weight times |ratio - c|, in the middle of all such.

    Of ratios of answers to weights it is the regression of least deviations: the largest parties tell most, and those
    of less than half of all weight cannot take it anywhere.
    """
    order = np.argsort(ratios, axis=0)
    below = np.cumsum(weights[order], axis=0)
    ends = ((below >= below[-1] / 2).argmax(axis=0), (below > below[-1] / 2).argmax(axis=0))
    columns = np.arange(ratios.shape[1])
    low, high = (ratios[order[end, columns], columns] for end in ends)
    return np.asarray(low / 2 + high / 2)


def _clip_one(residuals: Floats, edge: float, variance: float, shares: Floats) -> Booleans | None:
    """Clip in place along the first direction where that is due; whose scores were, None where it is due in none."""
    for direction in _directions(residuals, edge):
        scores: Floats = residuals @ direction
        inside = _winsorised(scores, variance, shares)
        if inside is not None and not np.array_equal(inside, scores):
            moved = np.asarray(scores != inside)
            residuals[moved] += np.outer((inside - scores)[moved], direction)
            return moved
    return None


def _directions(residuals: Floats, edge: float) -> Floats:
    """Right singular vectors (r, D) of the centred residuals whose variance is above `edge`, the largest first."""
    centred = residuals - residuals.mean(axis=0)
    _, lengths, directions = np.linalg.svd(centred, full_matrices=False)
    return np.asarray(directions[np.square(lengths) / len(residuals) > edge])


def _winsorised(scores: Floats, variance: float, shares: Floats) -> Floats | None:
    """Scores (K,) brought near their median, in proportion to `shares` (K,), which are 1 or more.

    None where their middle half spreads further than noise.
    """
    deviation, median = np.sqrt(variance), np.median(scores)
    spread = _MAD * np.median(np.abs(scores - median))
    if spread > _UNLIKE * deviation:
        return None
    reach = _KEPT * max(deviation, spread) * shares
    return np.clip(scores, median - reach, median + reach)
