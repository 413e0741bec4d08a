"""`federation check-claim`: what another tool's run really promises, beside what was claimed of it."""

from __future__ import annotations

from typing import Annotated, Literal

from typer import Option

from federation.contract.errors import InputError
from scenarios.commands.options import AsJson
from scenarios.commands.output import tell

Sampling = Literal["poisson", "shuffled", "unknown"]


def check_claim(
    rounds: Annotated[int, Option(min=1, help="How many noisy sums there were: steps, or rounds.")],
    delta: Annotated[float, Option(help="Probability beyond epsilon that is claimed.")],
    noise_multiplier: Annotated[
        float | None, Option(metavar="Z", help="Deviation of the noise over the clip norm.")
    ] = None,
    clip_norm: Annotated[float, Option(metavar="C", help="Largest norm of one contribution.")] = 1.0,
    noise_std: Annotated[
        float | None, Option(metavar="S", help="Deviation of the noise on the sum, in place of a multiplier.")
    ] = None,
    sensitivity: Annotated[
        float | None,
        Option(metavar="D", help="How far one contribution can really move the sum; default: the clip norm."),
    ] = None,
    sampling_rate: Annotated[
        float, Option(metavar="Q", help="Share of contributions in a round; batch over rows. 1: all of them.")
    ] = 1.0,
    sampling: Annotated[
        Sampling, Option(help="poisson: each is drawn by itself in every round; shuffled: in batches of a pass.")
    ] = "unknown",
    clipped: Annotated[
        Literal["row", "party"], Option(help="Whose contribution is clipped: a row's, or all of a party's.")
    ] = "row",
    rows_per_person: Annotated[int, Option(metavar="R", min=1, help="The most rows of one person.")] = 1,
    claimed: Annotated[float | None, Option(metavar="EPSILON", help="What was claimed.")] = None,
    unit: Annotated[
        Literal["row", "person", "party"] | None, Option(help="For which unit it was claimed; default: as clipped.")
    ] = None,
    adjacency: Annotated[
        Literal["add_remove", "replace"], Option(help="Whether a unit is added or removed, or replaced.")
    ] = "add_remove",
    as_json: AsJson = False,
) -> None:
    """Which epsilon a run of noisy sums has, by unit and adjacency, beside what was claimed, and what it rests on.

    For DP-SGD, DP-FedAvg and all else that clips contributions, adds them up and adds Gaussian noise, in rounds.
    """
    from scenarios.advice.claims import Run, judged, promised

    if (noise_multiplier is None) == (noise_std is None):
        given = "neither" if noise_std is None else "both"
        raise InputError(f"give --noise-multiplier or --noise-std, which say how much noise there was; got {given}")
    for name, value in (("--clip-norm", clip_norm), ("--sensitivity", sensitivity)):
        if value is not None and not 0 < value < float("inf"):
            raise InputError(f"{name} must be a positive finite number, got {value}")
    deviation = noise_std if noise_multiplier is None else noise_multiplier * clip_norm
    assert deviation is not None, "one of them is given"
    multiplier = deviation / (clip_norm if sensitivity is None else sensitivity)
    run = Run(multiplier, sampling_rate, rounds, delta, sampling, clipped, rows_per_person)
    found = list(promised(run))
    table = [
        {
            "unit": one.unit,
            "adjacency": one.adjacency,
            "sampling": one.sampling if sampling_rate < 1 else "all rows",
            "epsilon": one.epsilon,
            "delta": one.delta,
            "how": one.how,
        }
        for one in found
    ]
    told = []
    judgement = None
    if claimed is not None:
        judgement = judged(run, claimed, unit or clipped, adjacency)
        told.append(f"{judgement.told[:1].upper()}{judgement.told[1:]}.")
        told.append("All of this has to be true, and cannot be seen in these numbers:")
        told += [f"- {one}" for one in judgement.missing]
    record = {
        "noise_multiplier": multiplier,
        "sampling_rate": sampling_rate,
        "rounds": rounds,
        "epsilons": table,
        "claim": None if judgement is None else judgement.record(),
    }
    tell(as_json, record, text=told, hidden=("claim",))
