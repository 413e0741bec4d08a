"""The learner of EXPRIL as a state machine: it chooses the next query and learns from the responses.

Bins and strengths of regularisation follow from public numbers: rows, features, bins, and the noise of one count.
"""

from typing import NamedTuple

import numpy as np

from aggregator.learners.error_marginals.estimation import (
    ExchangeSettings,
    error_shares,
    estimate_labels,
    expected_totals,
    train_hypothesis,
)
from aggregator.learners.error_marginals.fits import importance_weights
from aggregator.learners.inputs.validation import matrix, shaped
from federation.contract.errors import InputError
from federation.contract.randomness import generator
from federation.numerics.binning import Bins
from federation.queries.marginals import Hypothesis


class ErrorQuery(NamedTuple):
    """Asks for errors and rows per bin under `hypothesis`, or, where that is None, for rows per bin only."""

    bins: Bins
    hypothesis: Hypothesis | None


class _Answer(NamedTuple):
    """What was answered about a hypothesis, and its predictions (n,) on the source."""

    predictions: np.ndarray
    errors: np.ndarray
    totals: np.ndarray


class ErrorMarginalsLearner:
    """Learns a classifier from marginals of errors (Lacombe et al. 2021, Algorithm 1), one query at a time.

    While `query()` gives one, ask it and hand its answer to `take`. All it looks at is the unlabelled source, which is
    public, and released answers. Equal arguments and answers give equal bits on one machine and number of threads. What
    soft labels make a constant is asked about with another threshold, at which class 1 has its estimated share.

    Attributes:
        queries: Q, for which the noise must be calibrated beforehand.
        hypotheses: those trained so far, h_1, h_2, ..., at most `settings.rounds`.
        repeated: whether the learner stopped because its next hypothesis told the source's rows apart exactly as an
            earlier one, so that asking about it again would teach nothing new; the remaining queries were not asked.

    Examples:
        >>> source = np.random.default_rng(0).normal(size=(300, 2))
        >>> learner = ErrorMarginalsLearner(source, ExchangeSettings(learner="linear"), deviation=0.0, rows=300, seed=0)
        >>> while (query := learner.query()) is not None:
        ...     wrong = query.hypothesis.predict(source) != (source[:, 0] > 0)  # only parties know the labels
        ...     indicators = query.bins.indicators(source)
        ...     learner.take(indicators @ wrong.astype(float), indicators @ np.ones(300))
        >>> round(float(np.mean(learner.chosen.predict(source) == (source[:, 0] > 0))), 2)
        1.0
    """

    def __init__(
        self, source: np.ndarray, settings: ExchangeSettings, *, deviation: float, rows: int | None, seed: int | None
    ) -> None:
        """Nothing is asked yet.

        Args:
            source: public features (n, d) of rows without labels.
            settings: what is learned, and from how many queries.
            deviation: standard deviation of the noise of one released count, of all parties together; 0 without.
            rows: the public number of target rows n_t; None where it is private, as when adding or removing a row is
                protected. Then the answers tell it, and until the first one it is taken to be n.
            seed: of the training.

        Raises `InputError` for a source, deviation or number of rows that cannot be used.
        """
        source = matrix(source, "source")
        if not 0 <= deviation < np.inf:
            raise InputError(f"deviation, of the noise of a count, must be a finite number from 0, got {deviation}")
        if rows is not None and rows < 1:
            raise InputError(f"rows, the number of target rows, must be at least 1, got {rows}")
        self.settings = settings
        self.queries = settings.queries
        self.hypotheses: list[Hypothesis] = []
        self.repeated = False
        self._source, self._deviation, self._rows, self._seed = source, float(deviation), rows, seed
        self._answers: list[_Answer] = []
        self._weighed_rows: float | None = None
        self._weights = np.full(len(source), 1 / len(source))
        self._fit_bins()
        first = None if settings.importance else Hypothesis.constant(source.shape[1], 1)
        self._pending: ErrorQuery | None = ErrorQuery(self._bins, first)

    def query(self) -> ErrorQuery | None:
        """What to ask now, the same until it is answered; None after the last."""
        return self._pending

    def take(self, errors: np.ndarray | None, totals: np.ndarray) -> None:
        """Learn from the answer to `query()`.

        `errors` (K,), None for a query without hypothesis, and `totals` (K,) are numbers of errors and of rows per bin,
        summed over parties; noise may make them negative. Raises `InputError` when nothing was asked or they do not
        fit what was.
        """
        if self._pending is None:
            raise InputError("no query is open, so no answer can be taken; release what was learned")
        asked = self._pending.hypothesis
        meaning = "one number for each bin asked about; a bin without rows is answered with noise like any other"
        totals = shaped(totals, "totals", (self._bins.total,), meaning)
        if (errors is None) != (asked is None):
            raise InputError("errors must come with every answer about a hypothesis, and with no other")
        if asked is None or errors is None:
            self._learn_weights(totals)
            self._pending = ErrorQuery(self._bins, Hypothesis.constant(self._source.shape[1], 1))
            return
        errors = shaped(errors, "errors", totals.shape, meaning)
        self._answers.append(_Answer(asked.predict(self._source), errors, totals))
        labels = self._estimated_labels()
        random = generator(self._seed, "error marginals", trial=len(self._answers))
        self.hypotheses.append(train_hypothesis(self._source, labels, self._weights, self.settings, random))
        self._pending = self._next_query(float(labels @ self._weights))

    def count_rows(self, deviation: float) -> None:
        """Take the number of target rows from the answers from now on: not all that were counted have answered.

        `deviation` is that of the noise of one count of those who have.
        """
        self._rows, self._deviation = None, deviation

    @property
    def chosen(self) -> Hypothesis:
        """The hypothesis to release: the last one, or a constant one by the guard. Raises `InputError` before any."""
        if not self.hypotheses:
            raise InputError("no hypothesis has been learned yet; answer the queries first")
        constant = self._better_constant() if self.settings.guard else None
        return self.hypotheses[-1] if constant is None else Hypothesis.constant(self._source.shape[1], constant)

    def _target_rows(self) -> float:
        """n_t: public, or what the answers so far say, or else the number of source rows."""
        if self._rows is not None:
            return self._rows
        sums = [self._weighed_rows] if self._weighed_rows is not None else []
        sums += [answer.totals.sum() / self._source.shape[1] for answer in self._answers]
        return max(1.0, float(np.mean(sums))) if sums else float(len(self._source))

    def _fit_bins(self) -> None:
        most = self.settings.bins
        if most is None or most == "four_deviations":
            rule = bins_per_feature if most is None else published_bins
            most = rule(self._target_rows(), self._source.shape[1], self._deviation)
        self._bins = Bins.fit(self._source, most, self._weights)
        self._indicators = self._bins.indicators(self._source)

    def _learn_weights(self, totals: np.ndarray) -> None:
        """Pb. 1, and bins of about equal weight."""
        features = self._source.shape[1]
        self._weighed_rows = totals.sum() / features
        rows, noise = self._target_rows(), self._deviation if self.settings.noisy_totals else 0.0
        strength = importance_strength(rows, self._bins.total, features, len(self._source), noise)
        weights = importance_weights(self._indicators, totals / rows, strength)
        # Marginals that are all noise may leave nothing; the source as it is then says more.
        self._weights = weights / weights.sum() if weights.sum() > 0 else self._weights
        self._fit_bins()

    def _estimated_labels(self) -> np.ndarray:
        """Pb. 2: the share of class 1 (n,) of every source row, by the answers that are remembered."""
        settings, rows = self.settings, self._target_rows()
        kept = self._answers if settings.memory == "cumulative" else self._answers[-1:]
        predictions, errors, totals = (np.stack(part) for part in zip(*kept, strict=True))
        features = np.repeat(np.arange(len(self._bins.sizes)), self._bins.sizes)
        expected = None
        if settings.noisy_totals:
            noise = self._deviation if settings.importance else 0.0
            expected = expected_totals(self._indicators @ self._weights, rows, len(self._source), noise)
        shares = error_shares(errors, totals, features, rows=rows, deviation=self._deviation, expected=expected)
        # Noisy totals halve the variance of a number of errors (`error_shares`). Least squares does not heed the noise,
        # as published, so that its penalty only chooses among labels that fit about equally well.
        heeded = 0.0 if settings.labels == "least_squares" else 0.5**0.5 if settings.noisy_totals else 1.0
        strength = label_strength(rows, self._bins.total, len(self._bins.sizes), self._deviation * heeded)
        return estimate_labels(self._indicators, self._weights, predictions, shares, settings.labels, strength)

    def _next_query(self, share: float) -> ErrorQuery | None:
        """What to ask after a hypothesis was trained on labels of which `share` is class 1; None at the end."""
        latest = self.hypotheses[-1]
        if len(self.hypotheses) == self.settings.rounds:
            return None
        predictions = latest.predict(self._source)
        if self.settings.rounding == "soft" and predictions.min() == predictions.max():
            # Much noise shrinks labels towards their mean, so that all rows look most like one class. How they compare
            # is still worth a question, which would not be asked otherwise.
            latest = latest.with_share(self._source, self._weights, share)
            predictions = latest.predict(self._source)
        # The errors of a hypothesis are the corrects of its opposite, so that asking about that repeats it as well.
        self.repeated = any(len(np.unique(predictions == answer.predictions)) == 1 for answer in self._answers)
        return None if self.repeated else ErrorQuery(self._bins, latest)

    def _better_constant(self) -> int | None:
        """The constant class that errs less than every hypothesis asked about, by noisy totals; None without one."""
        errors = [float(answer.errors.sum()) / self._source.shape[1] for answer in self._answers]
        constants = [self._target_rows() - errors[0], errors[0]]
        return int(np.argmin(constants)) if min(constants) < min(errors[1:], default=np.inf) else None


_ROWS_PER_DEVIATION = 4.0  # Lacombe et al. 2021, Section 4.2
_PIECES = 2  # straight ones, of the errors along a feature
_FEW_FEATURES, _MOST_BINS, _MOST_BINS_OF_MANY = 9, 30, 20
_SHARE_VARIANCE, _ERROR_VARIANCE = 0.5, 0.2  # over the bins of a feature, of whether a row is in one, and errs in it


def published_bins(rows: float, features: int, deviation: float) -> int:
    """Bins q with about four standard deviations of noise worth of rows each (Lacombe et al. 2021, Section 4.2).

    q = round(n_t / (4 deviation)), at least 2, and at most 30 (20 of more than 9 features), which is also taken without
    noise. `rows` is a public number of target rows n_t, `deviation` that of one released count.

    Examples:
        >>> published_bins(rows=1000, features=5, deviation=20.0)
        12
    """
    most = _MOST_BINS if features <= _FEW_FEATURES else _MOST_BINS_OF_MANY
    if deviation == 0:
        return most
    return int(np.clip(round(rows / (_ROWS_PER_DEVIATION * deviation)), 2, most))


def bins_per_feature(rows: float, features: int, deviation: float) -> int:
    """Of 2 to `published_bins` bins as many as tell most of errors that rise and fall once along a feature.

    Each of q bins has a q-th of the rows and the whole noise, so that more bins are a finer picture under more noise.
    They keep 1 - 4/q^2 of the variance of such errors, as two straight lines do, and tell it with the squared ratio of
    signal to noise n_t (1 - 4/q^2) / (q deviation^2 / n_t + 0.2), in which 0.2 is what chance adds for every row. That
    is 4 bins where noise prevails, and as many as there may be without noise. Chosen among rules of this kind on data
    that nothing else was chosen on (`benchmarks.unseen`). Arguments as there.

    Examples:
        >>> [bins_per_feature(rows=1000, features=5, deviation=deviation) for deviation in (0.0, 5.0, 20.0)]
        [30, 5, 4]
    """
    counts = np.arange(2, published_bins(rows, features, deviation) + 1)
    told = (1 - _PIECES**2 / counts**2) / (counts * deviation**2 / rows + _ERROR_VARIANCE)
    return int(counts[np.argmax(told)])


def importance_strength(rows: float, cells: int, features: int, source_rows: int, deviation: float) -> float:
    """alpha of Pb. 1 (Lacombe et al. 2021, Eq. 2): n / 2 times half the squared error of the target's marginals.

    With weights in units of 1/n, for `source_rows` n, the penalty is that half times the mean of (w_i - 1)^2 / 2. The
    `cells` K of d `features` have noise of `deviation` each, and shares of n_t `rows` vary by chance as well.

    Examples:
        >>> importance_strength(rows=1000, cells=20, features=5, source_rows=500, deviation=10.0)
        0.5625000000000001
    """
    return source_rows / 2 * _half_squared_error(rows, cells, features, deviation, _SHARE_VARIANCE)


def label_strength(rows: float, cells: int, features: int, deviation: float) -> float:
    """rho of Pb. 2: half the squared error of one answer about a hypothesis.

    The `cells` K of d `features` have noise of `deviation` each, and errors in n_t `rows` vary by chance as well.

    Examples:
        >>> label_strength(rows=1000, cells=20, features=5, deviation=10.0)
        0.0015
    """
    return _half_squared_error(rows, cells, features, deviation, _ERROR_VARIANCE)


def _half_squared_error(rows: float, cells: int, features: int, deviation: float, variance: float) -> float:
    """Half the expected squared norm of the error of K counts over n_t: from noise, and the `variance` of one row."""
    return 0.5 * (cells * (deviation / rows) ** 2 + variance * features / rows)
