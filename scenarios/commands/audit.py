"""`federation audit` and `federation check-claim`.

- `audit` tries to reject the claim of each mechanism, and shows that negative controls are rejected.
- `check-claim` computes the guarantee of another tool's run and compares it with the claim.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Exit, Option

from federation.contract.errors import InputError, nearest_name
from federation.contract.files import is_file
from scenarios.commands.options import AsJson, scenarios_and_mechanisms
from scenarios.commands.output import tell

if TYPE_CHECKING:
    from federation.mechanisms.audits import Verdict

_DIMENSION = re.compile(r"_\d+d$")
_OTHER_NAMES = {"gaussian": "discrete_gaussian"}


def audit(
    target: Annotated[
        str | None,
        Argument(
            help="A mechanism or a scenario; all mechanisms when omitted.", autocompletion=scenarios_and_mechanisms
        ),
    ] = None,
    runs: Annotated[int | None, Option(min=1000, help="Runs on each of the two neighbours.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check claimed epsilons against lower bounds from many runs.

    Exit codes: 1 if a claim is refuted, else 5 if an audit has no power, else 0.

    An audit of a scenario has power if it refutes the same claim, by as many runs, of a twin with half the noise, or
    with half the shares of a noise. That of a mechanism must refute all its twins, and show half of the claim.
    """
    from federation.mechanisms.audits import RUNS, audited_mechanisms, judge
    from scenarios.audits.auditor import audit_scenario, exit_code, tested

    mechanisms = audited_mechanisms()
    spelled = (target or "").replace("-", "_")  # the audited ones; `federation privacy` has hyphens
    wanted = None if target is None else _OTHER_NAMES.get(spelled, spelled)
    chosen = [case for name, case in mechanisms.items() if wanted in (None, name, _family(name))]
    if not chosen and target is not None:
        _require_scenario(target, mechanisms)
        raise Exit(audit_scenario(target, as_json, runs))
    verdicts = [judge(case, runs=runs or RUNS) for case in chosen]
    first = verdicts[0].result
    text = [f"Confidence {first.confidence:g}, {first.runs:,} runs a side. Lower bounds of broken twins:"]
    for verdict in verdicts:
        name, stands = verdict.audited.name, verdict.result.passed
        for mistake, twin in verdict.twins:
            text.append(f"{name}: {'MISSED' if twin.passed else 'caught'} {twin.lower_bound:.2f}  {mistake}")
        if (point := verdict.result.point) is not None:
            text.append(
                f"{name}: tested at epsilon {point.epsilon:.2f}, of whose delta {point.claimed:.2g} the bound is "
                f"{point.lower_bound:.2g}"
            )
        if not verdict.as_expected:
            text.append(f"{name}: {'NO POWER' if stands else 'REFUTED'}")
    records = [_record(verdict) for verdict in verdicts]
    tell(as_json, records, text=text, hidden=("confidence", "runs", "event", "broken_twins", *tested(None)))
    refuted = any(not verdict.result.passed for verdict in verdicts)
    raise Exit(exit_code(refuted=refuted, blind=not all(verdict.as_expected for verdict in verdicts)))


def _record(verdict: Verdict) -> dict[str, Any]:
    from scenarios.audits.auditor import tested

    result = asdict(verdict.result)
    del result["point"]
    return {
        "mechanism": verdict.audited.name,
        "epsilon": result.pop("claimed"),
        **result,
        **tested(verdict.result.point),
        "claim_stands": verdict.result.passed,
        "as_expected": verdict.as_expected,
        "broken_twins": [
            {"mistake": mistake, "lower_bound": twin.lower_bound, "caught": not twin.passed}
            for mistake, twin in verdict.twins
        ],
    }


def _family(name: str) -> str:
    """l2_gamma, which stands for the cases l2_gamma_2d and l2_gamma_3d; other names stand for themselves."""
    return _DIMENSION.sub("", name)


def _require_scenario(target: str, mechanisms: Iterable[str]) -> None:
    """Refuse a target that is neither a mechanism nor a scenario, naming both kinds."""
    from scenarios.settings.loader import library

    if target in library() or is_file(Path(target)):
        return
    families = list(dict.fromkeys(map(_family, mechanisms)))
    spelled = [*_OTHER_NAMES, *families, *mechanisms]
    hint = nearest_name(target, library()) or nearest_name(target.replace("-", "_"), spelled)
    raise InputError(
        f"there is no mechanism, scenario file or library scenario '{target}'; "
        f"mechanisms: {', '.join(families)}; library: {', '.join(library())}{hint}"
    )


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
    from scenarios.advice.other_tools import Run, judged, promised

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
        "claim": None if judgement is None else asdict(judgement),
    }
    tell(as_json, record, text=told, hidden=("claim",))
