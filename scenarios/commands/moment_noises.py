"""What `federation privacy mean-operator` tells: every noise of the mean of y x, and which of them `auto` takes."""

from __future__ import annotations

import math
from typing import Any

from aggregator.learners.mean_operators.accuracy import loss_in_words
from federation.mechanisms.sums import row_sums as summed_response
from federation.mechanisms.sums.row_sums import SumNoiseKind, regularisation
from federation.mechanisms.sums.row_sums import calibrate_row_sums as calibrate

RESPONSE = "randomised_response"
_KINDS: tuple[SumNoiseKind, ...] = ("pure", "laplace", "gaussian", "published_laplace")


def moment_noises(
    *,
    rows: int,
    dimension: int,
    epsilon: float,
    delta: float,
    parties: int,
    shares: int,
    l1_bound: float | None,
    weight: float,
) -> tuple[dict[str, Any], list[str]]:
    """A record with a row for each mechanism, and what to say of it.

    `rows` of norm 1 lie at `parties` parties, as many at each, who add noise of their own, or where `shares` is not 0
    share one noise, which so many of them make up. `weight` is how much an error of randomised response counts against
    one of noise on a sum that is as large. Raises `InputError` for numbers that no mechanism works with.
    """
    public: dict[str, Any] = {"dimension": dimension, "epsilon": epsilon, "delta": delta}
    given = {**public, "rows": rows, "l1_bound": l1_bound, "contributors": shares}
    noises = {kind: calibrate(kind, **given) for kind in _KINDS if delta or kind != "gaussian"}
    least, response = calibrate("auto", **given), summed_response.calibrate_summed_response(epsilon)
    wholes, of_labels = parties / shares if shares else parties, rows * response.label_variance
    below = response.rows_for(least, weight)
    responds = weight * of_labels < wholes * least.noise_norm() ** 2

    def row(name: str, promise: Any, square: float, chosen: bool) -> dict[str, Any]:
        norm = math.sqrt(square) / rows
        known = {"noise": name, "mechanism": promise.name, "epsilon": promise.epsilon, "delta": promise.delta}
        known |= {"deviation": norm / math.sqrt(dimension), "noise_norm": norm, "loss": loss_in_words(norm)}
        return known | {"regularisation": regularisation(norm**2), "auto": chosen}

    squares = {kind: wholes * noise.noise_norm() ** 2 for kind, noise in noises.items()}
    found = [row(kind, noise, squares[kind], noise == least and not responds) for kind, noise in noises.items()]
    found.append(row(RESPONSE, response.labels, of_labels, responds))
    text = [
        "Noise is that on the mean of y x, whose norm is at most 1: the standard deviation of one coordinate, and the "
        "root mean square norm. One label, or one row, may be replaced; randomised_response is for labels alone. "
        "published_laplace is meant for rows of L1 norm 1 and claims epsilon "
        f"{epsilon:g}; shown is what it gives.",
        "auto takes the smallest norm of noise on the sum, or randomised_response where labels alone are protected and "
        f"parties send their rows, which are public: {_where(shares, below, weight)}.",
    ]
    if shares:
        text.append(
            f"Noise on the sum holds while at least {shares} parties add their shares and tell nobody: a quorum of "
            f"{parties} parties, less those that may collude. Shown is the noise of all shares."
        )
    elif parties > 1:
        text.append(f"Each of {parties} parties adds noise of its own.")
    if min(*squares.values(), of_labels) > rows**2:
        text.append("The noise is longer than any mean can be: take more rows, a larger epsilon or fewer features.")
    record = {**public, "rows": rows, "parties": parties, "shares": shares, "response_below": below}
    return {**record, "mechanisms": found}, text


def _where(shares: int, below: int, weight: float) -> str:
    weighed = "" if weight == 1 else f", its errors counting {weight:g} times"
    return f"by the errors of all rows together{weighed}" if shares else f"below {below} rows at a party{weighed}"
