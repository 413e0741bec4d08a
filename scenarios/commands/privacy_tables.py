"""Tables of `federation privacy`: noises of votes and of the mean operator, and costs of secure aggregation.

- `vote_noises`: sensitivities of `soft_vote` and `majority_vote`, and the noise that they require.
- `moment_noises`: every noise of the mean of y x, and the one that `auto` takes.
- `masked_sums`: neighbours, thresholds, failure probabilities and costs of masked sums.
"""

import math
from dataclasses import replace
from typing import Any, Literal, get_args

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from aggregator.learners.mean_operators.accuracy import loss_in_words
from federation.contract.errors import InputError
from federation.contract.trust import Servers, TrustTerms
from federation.features.feature_map import Ball
from federation.mechanisms.accounting import sensitivity
from federation.mechanisms.noise.additive import AdditiveMechanism, Noise
from federation.mechanisms.noise.additive import calibrate as additive_calibrate
from federation.mechanisms.sums import row_sums as summed_response
from federation.mechanisms.sums import shared_sums as vector_sums
from federation.mechanisms.sums import shares
from federation.mechanisms.sums.row_sums import SumNoiseKind, regularisation
from federation.mechanisms.sums.row_sums import calibrate_row_sums as calibrate
from federation.secure_aggregation import masks as keys
from federation.secure_aggregation.plan import BITS, KEY, SAID, Roster, SumPlan, neighbourhood, planned
from scenarios.simulated.secure_aggregation import seconds, sum_costs, timed


def masked_sums(
    *, parties: int, corrupt: float, dropout: float, numbers: int, quorum: float | None
) -> tuple[dict[str, Any], list[str]]:
    """A record with a row for each kind of `servers`, and what to say of it.

    Of `parties` the share `corrupt` colludes, `dropout` stays away; each sends `numbers` integers. Without a `quorum`
    as many must be counted as are there when all of these stay away. Raises `InputError` where no sum can be.
    """
    terms = TrustTerms(parties, colluding=corrupt)
    bad, gone = terms.colluders, terms.share("absent", dropout)
    share = (parties - gone - 0.5) / parties if quorum is None else quorum  # rounds up to all who are there
    roster = Roster((bytes(KEY),) * parties)
    rows: list[dict[str, Any]] = []
    least = contributors = 0
    for servers in get_args(Servers):
        two = servers == "two"
        second = keys.public(X25519PrivateKey.generate()) if two else b""
        try:
            plan = planned("00" * KEY, roster, numbers, replace(terms, quorum=share, servers=servers), dropout, second)
        except InputError as error:
            if two:
                raise
            rows.append({"servers": servers} | dict.fromkeys(_COLUMNS) | {"note": str(error)})
            continue
        least, contributors = plan.least, plan.contributors
        rows.append({"servers": servers} | _chances(plan, bad, gone) | _costs(plan, dropout) | {"note": ""})
    record: dict[str, Any] = {"parties": parties, "colluding": bad, "absent": gone, "numbers": numbers}
    record |= {"least_counted": least, "contributors": contributors, "deviation": (parties / contributors) ** 0.5}
    text = [
        f"In a scenario {', '.join(f'servers: {servers} is {who}' for servers, who in SAID.items())}.",
        f"{contributors} honest shares are the whole noise, so that all {parties} have {record['deviation']:.3g} times "
        "its standard deviation.",
        "corrupt, few and cut are base-2 logarithms of what may fail for all parties together: that one has more "
        f"corrupt neighbours than planned (an active server may try many rings: {BITS['active']} bits), that one has "
        "fewer than the threshold left, that the ring falls apart. Who is one of too many neighbours reveals a part.",
        "Seconds are of this machine, of one core: how often each operation is needed times what it took just now; "
        "Python adds a tenth to a third. A party's are its own, a server's those of all parties together.",
    ]
    return {**record, "modes": rows}, text


_COLUMNS = (
    *("neighbours", "threshold", "corrupt", "few", "cut"),
    *("party_seconds", "party_sends", "party_receives", "server_seconds", "server_receives", "server_sends"),
)


def _chances(plan: SumPlan, bad: int, gone: int) -> dict[str, Any]:
    if plan.second:
        return dict.fromkeys(_COLUMNS[:5])
    found = neighbourhood(plan.parties, bad, gone, plan.adversary)
    logs = (found.log_corrupt, found.log_absent, found.log_cut)
    shown = (None if log == float("-inf") else round(log, 1) for log in logs)
    return dict(zip(_COLUMNS[:5], (found.neighbours, found.threshold, *shown), strict=True))


def _costs(plan: SumPlan, dropout: float) -> dict[str, Any]:
    """The second server's work counts as the server's."""
    costs, times = sum_costs(plan, dropout), timed(plan)
    there = plan.parties * (1 - dropout if plan.second else 1)
    party, server = seconds(costs.party, times), seconds(costs.server, times) + seconds(costs.second, times)
    received, sent = there * (costs.up + costs.across), there * costs.down
    found = (party, round(costs.up), round(costs.down), there * server, round(received), round(sent))
    return dict(zip(_COLUMNS[5:], found, strict=True))


_NOISES: tuple[tuple[Noise, Literal["scale", "sigma"]], ...] = (("pure", "scale"), ("gaussian", "sigma"))
_UNIT = "shares of norm 1, trust:"
_TOLD = (
    "delta is that of Gaussian noise. Parameters are weights on features of norm at most 1 (an inexact solver adds its "
    "slack); the statistic's whitened coordinates have norm at most 1. Compare noise with what it perturbs."
)


def vote_noises(
    *,
    majority: bool,
    parties: int,
    classes: int,
    regularisation: float,
    epsilon: float,
    delta: float,
    dimension: int,
    contributors: int | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """The record, with a row for each sensitivity, and what to say with it; `dimension` is that of features.

    With `contributors` also the mean of shares of norm 1: with an aggregator's noise, and with shares of noise of which
    so many are whole, where all parties add theirs. Raises `InputError` for numbers that no noise fits.
    """
    target: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
    bound = sensitivity.majority_vote if majority else sensitivity.soft_vote
    parameters, contrasts = dimension * (1 if classes == 2 else classes), dimension * (classes - 1)
    reaches = {
        f"parameters, {form}": (
            bound(form, regularisation=regularisation, parties=parties, classes=classes),
            parameters,
        )
        for form in ("published", "tight", "diameter")
    }
    reaches["soft vote statistic"] = (sensitivity.statistic(parties), contrasts)
    if contributors is not None:
        reaches[f"{_UNIT} aggregator"] = (2 / parties, contrasts)
    rows = [
        _row(what, [additive_calibrate(noise, sensitivity=reach, dimension=size, **target) for noise, _ in _NOISES])
        for what, (reach, size) in reaches.items()
    ]
    text = [_TOLD]
    if contributors is not None:
        known: dict[str, Any] = {
            "ball": Ball(1.0, scaled=True),
            "dimension": contrasts,
            "contributors": contributors,
            **target,
        }
        wholes = [vector_sums.calibrate_vector_sums(noise, **known).additive for noise, _ in _NOISES]
        rows.append(_row(f"{_UNIT} secure", [shares.in_mean(whole, contributors, parties) for whole in wholes]))
        text.append(f"Of the shares of noise {contributors} are whole, and all {parties} parties add theirs.")
    return {**target, "rows": rows}, text


def _row(what: str, noises: list[AdditiveMechanism]) -> dict[str, Any]:
    row: dict[str, Any] = {"what": what, "dimension": noises[0].dimension, "sensitivity": noises[0].sensitivity}
    for (name, scale), noise in zip(_NOISES, noises, strict=True):
        row |= {f"{name}_{scale}": noise.parameters["scale"], f"{name}_noise_norm": noise.expected_noise_norm()}
    return row


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
