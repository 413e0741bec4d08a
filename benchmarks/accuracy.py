"""Accuracy at stated settings beside the figures to reach: python -m benchmarks.accuracy [--data-dir DIR] [NAME ...]

Runs the library scenarios at the epsilons of the bars only; NAME picks scenarios. Those whose data is missing are
skipped with a message.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass

from benchmarks.common import accuracies_of, print_tables, run_of

PUBLISHED = "soft_vote-output-published-regularisation="


@dataclass(frozen=True)
class Bar:
    """The mean accuracy that a variant (the best of several) must reach: low <= accuracy <= high.

    `beside` another variant of the run, both are how far it may be from the mean accuracy of that.
    """

    scenario: str
    variants: tuple[str, ...]
    epsilon: float
    low: float
    high: float = 1.0
    beside: str = ""


BARS = (
    Bar("har-published", (PUBLISHED + "0.0001",), 1, 0.08, 0.28),
    Bar("har-published", tuple(PUBLISHED + lam for lam in ("0.0001", "0.001", "0.01", "0.1", "1")), 1, 0.28, 0.40),
    Bar("har-soft-vote", ("soft_vote",), 1, 0.83),
    Bar("har-soft-vote", ("soft_vote",), 3, 0.84),
    Bar("har-soft-vote", ("soft_vote",), 10, 0.87),
    Bar("har-soft-vote", ("soft_vote-gaussian",), 1, 0.835),
    Bar("har-soft-vote", ("soft_vote-gaussian",), 3, 0.88),
    Bar("har-soft-vote", ("soft_vote-gaussian",), 10, 0.89),
    Bar("har-soft-vote", ("parameter_average",), 1, 0.82),
    Bar("har-secure-sum", ("soft_vote-secure",), 1, -0.02, 0.02, beside="soft_vote"),
    Bar("har-secure-sum", ("parameter_average-secure",), 1, -0.02, 0.02, beside="parameter_average"),
    Bar("kdd-soft-vote", ("soft_vote",), 1, 0.91),
    Bar("kdd-large", ("soft_vote",), 0.1, 0.915),
    Bar("kdd-large", (PUBLISHED + "0.0001",), 10, 0.905, 0.925),
    Bar("quickstart", ("soft_vote",), 10, 0.85),
)
BASELINES = ("pooled", "individual", "soft_vote-output-off-regularisation=0.0001", "majority_vote-off")


def accuracies(scenario: str, data_dir: str | None) -> dict[tuple[str, float], list[float]]:
    """All accuracies of a scenario by (variant, epsilon), at the epsilons of its bars."""
    wanted = sorted({bar.epsilon for bar in BARS if bar.scenario == scenario})
    return accuracies_of(run_of(scenario, data_dir, [f"privacy.epsilon={wanted}"]))


def best(bar: Bar, found: dict[tuple[str, float], list[float]]) -> tuple[float, float, str]:
    """Mean, standard deviation over releases, and name of the best of the bar's variants."""
    measured = [
        (statistics.mean(v), statistics.stdev(v), name) for name in bar.variants for v in [found[name, bar.epsilon]]
    ]
    return max(measured)


def show(scenario: str, arguments: argparse.Namespace) -> None:
    """Prints one line per bar of a scenario."""
    found = accuracies(scenario, arguments.data_dir)
    for bar in (bar for bar in BARS if bar.scenario == scenario):
        mean, deviation, name = best(bar, found)
        other = statistics.mean(found[bar.beside, bar.epsilon]) if bar.beside else 0.0
        verdict = "reached" if bar.low <= mean - other <= bar.high else "MISSED"
        beside = f", {bar.beside} {other:.3f}" if bar.beside else ""
        print(
            f"{scenario}, epsilon {bar.epsilon:g}: {mean:.3f} (sd {deviation:.3f} over releases) by {name}{beside}; "
            f"bar {bar.low:g} to {bar.high:g}: {verdict}"
        )
    for (name, _), values in found.items():
        if name in BASELINES:
            print(f"{scenario}, NON-PRIVATE {name}: {statistics.mean(values):.3f}")


if __name__ == "__main__":
    print_tables(__doc__, list(dict.fromkeys(bar.scenario for bar in BARS)), show, one_thread=False)
