"""Estimates from noisy error marginals: error rates per bin, labels of the source, and trained hypotheses.

- `ExchangeSettings` holds everything that the learner knows before its first query.
- `error_shares` estimates error rates per bin from noisy numbers of errors and rows. No value reveals an empty bin.
- `estimate_labels` solves Problem 2 of Lacombe, Jetley and Sebag 2021.
- `train_hypothesis` trains on weighted rows whose labels are probabilities of class 1.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from aggregator.learners.bag_regression.network import Adam, Perceptron, column_scaling, cosine_decay
from aggregator.learners.error_marginals.fits import box_labels, entropy_labels
from aggregator.learners.inputs.validation import require_flag, require_integer, require_one_of
from federation.contract.errors import InputError
from federation.contract.query import MOST_BINS, MOST_EPOCHS, MOST_ROUNDS, MOST_WIDTH
from federation.numerics.rows import Floats
from federation.queries.marginals import Hypothesis

Memory = Literal["cumulative", "instantaneous"]
LabelEstimate = Literal["entropy", "least_squares"]
Rounding = Literal["soft", "hard"]
Learner = Literal["network", "linear"]


@dataclass(frozen=True)
class ExchangeSettings:
    """How hypotheses are learned from marginals of errors, fixed before the first query.

    Attributes:
        rounds: T >= 1, the hypotheses h_1..h_T that are trained; h_0..h_{T-1} are asked about.
        importance: ask first how the target's rows spread over the bins, and weight the source to match (Pb. 1).
            Without it source and target must have one distribution.
        memory: "cumulative" estimates labels from the answers of all rounds (C-EXPRIL), "instantaneous" from the last
            one only (I-EXPRIL).
        labels: "entropy" takes the labels of largest entropy that fit the answers, "least_squares" those nearest to 1/2
            within [0, 1], of which the published ones are a limit.
        rounding: "soft" trains on label estimates in [0, 1], "hard" on their nearest class, as published.
        learner: "network" of ReLU layers, as published, or "linear" logistic regression.
        hidden: widths of the network's hidden layers.
        epochs: passes over the source in which the network is trained. None for 40 with soft labels, too few to learn
            the noise of the answers, and 100 with hard ones, which minimise the cross-entropy as published; more of a
            small source.
        bins: bins of every feature at most; None for as many as tell most by public numbers (`bins_per_feature`), and
            "four_deviations" for the published number (`published_bins`).
        guard: release a constant class if noisy totals say that it errs less than every hypothesis asked about.
        noisy_totals: the numbers of rows per bin are released with the noise of the errors and corrects; False where
            they are exact because features are public.

    Raises `InputError` for values out of range.

    Examples:
        >>> ExchangeSettings(rounds=3, importance=True).queries
        4
        >>> ExchangeSettings(memory="all")
        Traceback (most recent call last):
        federation.contract.errors.InputError: memory must be one of cumulative, instantaneous, got 'all'
    """

    rounds: int = 2
    importance: bool = False
    memory: Memory = "cumulative"
    labels: LabelEstimate = "entropy"
    rounding: Rounding = "soft"
    learner: Learner = "network"
    hidden: tuple[int, ...] = (32, 32)
    epochs: int | None = None
    bins: int | Literal["four_deviations"] | None = None
    guard: bool = False
    noisy_totals: bool = True

    def __post_init__(self) -> None:
        require_integer("rounds", self.rounds, 1, 2, MOST_ROUNDS)
        for name in ("importance", "guard", "noisy_totals"):
            require_flag(name, getattr(self, name))
        kinds = {"memory": Memory, "labels": LabelEstimate, "rounding": Rounding, "learner": Learner}
        for name, kind in kinds.items():
            require_one_of(name, getattr(self, name), get_args(kind))
        if not self.hidden:
            raise InputError("hidden must name the width of at least one layer, got none; use learner: linear instead")
        for width in self.hidden:
            require_integer("hidden, the width of a layer,", width, 1, 32, MOST_WIDTH)
        if self.epochs is not None:
            require_integer("epochs", self.epochs, 1, 40, MOST_EPOCHS)
        if self.bins not in (None, "four_deviations"):
            require_integer("bins", self.bins, 1, 20, MOST_BINS)
        if self.guard and self.rounds < 2:
            raise InputError(
                "guard needs rounds of 2 or more, got 1: only then is a trained hypothesis asked about; "
                "raise rounds or leave guard out"
            )

    @property
    def queries(self) -> int:
        """Q, the queries for which noise must be calibrated: one per round, and one for importance weights."""
        return self.rounds + self.importance


_BATCH, _LEAST_STEPS = 64, 600
_SOFT_EPOCHS, _HARD_EPOCHS = 40, 100
_RATE, _LAST_RATE = 1e-3, 1e-2  # the last learning rate is this share of the first
_PENALTY = 1e-3  # of the squared weights of the logistic regression, at mean weight 1


def train_hypothesis(
    rows: np.ndarray, shares: np.ndarray, weights: np.ndarray, settings: ExchangeSettings, random: np.random.Generator
) -> Hypothesis:
    """The classifier of least weighted cross-entropy that training finds; constant where there is one class only.

    Args:
        rows: features (n, d).
        shares: of class 1 (n,) in [0, 1]; a soft label counts as one row of each class, weighted by their shares.
        weights: of the rows (n,), not negative, with a positive sum.
        settings: learner, hidden layers and rounding; "hard" takes the nearest class, and 1 for a share of 1/2.
        random: of the initial parameters and the order of the rows. Equal arguments give equal bits on one machine.
    """
    if settings.rounding == "hard":
        shares = (shares >= 0.5).astype(np.float64)
    used = weights > 0
    rows, shares, weights = rows[used], shares[used], weights[used] / weights[used].mean()
    if shares.min() == shares.max() and shares[0] in (0.0, 1.0):
        return Hypothesis.constant(rows.shape[1], int(shares[0]))
    centre, scale = column_scaling(rows)
    scaled = (rows - centre) / scale
    if settings.learner == "linear":
        matrices, offsets = _logistic(scaled, shares, weights)
    else:
        matrices, offsets = _network(scaled, shares, weights, settings, random)
    first = matrices[0] / scale[:, None]
    return Hypothesis.of([first, *matrices[1:]], [offsets[0] - centre @ first, *offsets[1:]])


def _logistic(rows: np.ndarray, shares: np.ndarray, weights: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    model = LogisticRegression(C=1 / (_PENALTY * len(rows)), solver="newton-cholesky")
    labels = np.repeat([1, 0], len(rows))
    model.fit(np.vstack([rows, rows]), labels, np.concatenate([weights * shares, weights * (1 - shares)]))
    return [model.coef_.T], [model.intercept_]


def _network(
    rows: np.ndarray, shares: np.ndarray, weights: np.ndarray, settings: ExchangeSettings, random: np.random.Generator
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Adam on the weighted cross-entropy in single precision, with rates that decay as a cosine."""
    network = Perceptron((rows.shape[1], *settings.hidden, 1))
    parameters = network.initial(random)
    adam, gradient = Adam(parameters), np.empty_like(parameters)
    inputs, targets, sizes = (part.astype(np.float32) for part in (rows, shares, weights))
    order, step = np.arange(len(rows)), 0
    batches = -(-len(rows) // _BATCH)
    usual = _SOFT_EPOCHS if settings.rounding == "soft" else _HARD_EPOCHS
    epochs = settings.epochs or max(usual, -(-_LEAST_STEPS // batches))
    for _ in range(epochs):
        random.shuffle(order)
        for start in range(0, len(rows), _BATCH):
            chosen = order[start : start + _BATCH]
            activations = network.activations(parameters, inputs[chosen])
            misses = 0.5 * (1 + np.tanh(0.5 * activations[-1][:, 0])) - targets[chosen]
            gradient[:] = 0
            network.add_gradient(gradient, parameters, activations, sizes[chosen] * misses / len(chosen))
            adam.step(gradient, cosine_decay(step, epochs * batches, _RATE, _LAST_RATE))
            step += 1
    matrices, offsets = zip(*network.layers(parameters.astype(np.float64)), strict=True)
    return list(matrices), list(offsets)


def estimate_labels(
    indicators: sparse.csr_array,
    weights: np.ndarray,
    predictions: np.ndarray,
    error_shares: np.ndarray,
    estimate: LabelEstimate,
    strength: float,
) -> np.ndarray:
    """Shares of class 1 (n,) in [0, 1] of n source rows that fit what was answered about t hypotheses, t >= 1.

    Args:
        indicators: which rows lie in which bins, R (K, n).
        weights: of the rows w (n,), summing to 1.
        predictions: of every hypothesis h, 0 or 1 (t, n).
        error_shares: of every hypothesis q, in [0, 1] (t, K).
        estimate: labels of largest entropy, or nearest to 1/2 in least squares.
        strength: rho of that regularisation.

    The errors of h among rows with labels y are R_w |h - y| = R_w h - R diag(s) diag(w) y, with R_w = R diag(w) and s
    +1 where h is 1, else -1, so that y solves R diag(s) diag(w) y = R_w h - (R_w 1) q (Eq. 3 to 6).

    Examples:
        >>> indicators = sparse.csr_array(np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]))  # bins of rows
        >>> always, shares = np.ones((1, 4)), np.array([[0.9, 0.2]])  # of errors of the constant 1
        >>> estimate_labels(indicators, np.full(4, 0.25), always, shares, "entropy", 1e-6).round(2)
        array([0.1, 0.1, 0.8, 0.8])
    """
    masses = indicators @ weights
    blocks = [indicators.multiply(2.0 * labels - 1.0) for labels in predictions]
    targets = [
        indicators @ (weights * labels) - masses * shares
        for labels, shares in zip(predictions, error_shares, strict=True)
    ]
    solve = entropy_labels if estimate == "entropy" else box_labels
    return solve(sparse.vstack(blocks, format="csr"), np.concatenate(targets), strength, weights)


_FEWEST_ROWS = 1.0  # of a bin whose share of errors is looked at


Totals = tuple[Floats, Floats]  # means and variances (K,) of rows per bin


def expected_totals(shares: Floats, rows: float, source_rows: int, deviation: float) -> Totals:
    """What the source says of the target's rows per bin before any answer: means and variances (K,), in rows.

    For n_t target `rows`, from the source's weighted shares of rows per bin (K,), within [0, 1] but for rounding.
    Shares of n = `source_rows` and of n_t rows of one distribution differ by chance; weights that were fitted to noisy
    marginals add about the noise of one count, `deviation`, which is 0 without such weights.

    Examples:
        >>> expected_totals(np.array([0.5, 0.5]), rows=100, source_rows=1000, deviation=2.0)
        (array([50., 50.]), array([31.5, 31.5]))
    """
    shares = np.clip(shares, 0.0, 1.0)
    chance = rows * shares * (1 - shares) * (1 + rows / source_rows)
    return rows * shares, chance + deviation**2


def error_shares(
    errors: Floats, totals: Floats, features: np.ndarray, *, rows: float, deviation: float, expected: Totals | None
) -> Floats:
    """Shares of errors in [0, 1] per query and bin (t, K); post-processing of the answers to t queries about K bins.

    Args:
        errors: noisy numbers of errors (t, K), any finite numbers.
        totals: numbers of rows (t, K); noisy ones are the sum of noisy errors and noisy corrects.
        features: the feature of every bin (K,), 0..d-1.
        rows: n_t, the rows of every feature's bins together.
        deviation: standard deviation of one noisy number of errors or of corrects.
        expected: what else is known of the totals (`expected_totals`); None where they are exact.

    With U errors and V corrects of a bin, U + V and U - V have independent noise. All queries have one U + V: what they
    say of it and what the source says are averaged by precision, and shifted so that every feature has n_t rows. U is
    then half the sum of that and of U - V, whose noise has half the variance of U's alone. A bin with less than one row
    gets the share of errors of all bins.

    Examples:
        >>> errors, totals = np.array([[2.0, 6.0]]), np.array([[10.0, 10.0]])
        >>> error_shares(errors, totals, np.array([0, 0]), rows=20.0, deviation=0.0, expected=None)
        array([[0.2, 0.6]])
    """
    if expected is None:
        rows_per_bin = totals
    else:
        corrects = totals - errors
        rows_per_bin = _combined_totals(totals, features, rows, deviation, expected)
        errors = (rows_per_bin + errors - corrects) / 2
    overall = errors.sum(axis=1, keepdims=True) / np.maximum(rows * (features.max() + 1), _FEWEST_ROWS)
    shares = np.where(rows_per_bin < _FEWEST_ROWS, overall, errors / np.maximum(rows_per_bin, _FEWEST_ROWS))
    return np.clip(shares, 0.0, 1.0)


def _combined_totals(totals: Floats, features: np.ndarray, rows: float, deviation: float, expected: Totals) -> Floats:
    """Rows per bin (K,) from the totals (t, K) of t queries and what is expected, d features of n_t rows each."""
    mean = totals.mean(axis=0)
    noise = 2 * deviation**2 / len(totals)
    means, variances = expected
    trust = variances + noise
    share = np.divide(noise, trust, out=np.zeros_like(trust), where=trust > 0)
    combined = (1 - share) * mean + share * means
    counts = np.bincount(features)
    return np.asarray(combined + ((rows - np.bincount(features, combined)) / counts)[features])
