"""What a private selection chose and what it cost, in a table and in sentences; and nothing else of it."""

from __future__ import annotations

from typing import Any

from scenarios.advice.selection import Selected, Selection
from scenarios.advice.words import named
from scenarios.scores.tasks import REGRESSION
from scenarios.settings.protocol_options import task as task_of


def record(selection: Selection, found: Selected) -> dict[str, Any]:
    """All that may be told, as JSON has it."""
    return {
        "non_private": False,
        "charged": True,
        "chosen": named(found.chosen),
        "score": found.score,
        "score_noise": _deviation(selection),
        "guarantee": found.guarantee.to_dict(),
        "candidates": [named(one) for one in selection.candidates],
        "left_out": list(selection.left_out),
    }


def rows(selection: Selection, found: Selected) -> list[dict[str, str]]:
    """The choice with its noisy score."""
    return [
        {
            "chosen": named(found.chosen),
            _measure(found): f"{found.score:.3g}, give or take {_deviation(selection):.2g}",
            "cost": _cost(found),
        }
    ]


def sentences(selection: Selection, found: Selected) -> list[str]:
    """What was done and what it cost, what it chose, and what would have cost nothing."""
    first, chosen = named(selection.candidates[0]), named(found.chosen)
    told = [
        f"Private selection among {', '.join(map(named, selection.candidates))}: {selection.law.mean:.3g} tries on "
        "average; how many there were nobody may learn, and so no time may end it.",
        f"It cost {_cost(found)}, for the choice, its model and its score together.",
        f"Use {chosen}: its {_measure(found)} on rows held out is {found.score:.3g}, give or take "
        f"{_deviation(selection):.2g} for the noise of that number.",
    ]
    if selection.left_out:
        told.insert(1, f"Left out: {'; '.join(selection.left_out)}.")
    same = "the same" if chosen == first else first
    told.append(f"Public numbers alone choose {same}, for nothing.")
    return told


def why(found: Selected) -> str:
    """How the first was chosen, for a comment of a scenario; without a full stop."""
    return f"chosen by a private selection, which has spent {_cost(found)}; every ledger counts that"


def _cost(found: Selected) -> str:
    spent = found.guarantee
    return f"epsilon {spent.epsilon:.4g} and delta {spent.delta:.3g} for one {spent.unit} (replace)"


def _measure(found: Selected) -> str:
    regression = task_of([found.chosen.kind]) == REGRESSION
    return "1 less squared errors over that of the range" if regression else "share of right answers"


def _deviation(selection: Selection) -> float:
    return float(selection.noise.variance() ** 0.5)
