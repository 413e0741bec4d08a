"""Which protocol is the most accurate on digits at each epsilon, and what does privacy cost?

Run it: python docs/examples/compare_protocols.py
"""

from __future__ import annotations

import statistics
from collections import defaultdict

import scenarios

SCENARIO = {
    "name": "compare",
    "data": {"source": "digits", "auxiliary": 430, "features": [{"whiten": 12}, "unit_norm"]},
    "parties": {"count": 200, "rows": 5},
    "protocols": [
        {"kind": "soft_vote", "noise": ["pure", "gaussian"]},
        {"kind": "parameter_average"},
        {"kind": "majority_vote", "sensitivity": "published"},
    ],
    "privacy": {"epsilon": [1, 3, 10], "delta": 1e-6},
    "trials": {"splits": 2, "noise": 3},
}


def main() -> None:
    """Run, and print the mean accuracy of every variant at every epsilon, the best first."""
    run = scenarios.run(SCENARIO)
    values: dict[tuple[str, float], list[float]] = defaultdict(list)
    for row in run.rows:
        if row["metric"] == "accuracy":
            values[row["variant"], row["epsilon"]].append(row["value"])
    for epsilon in (1.0, 3.0, 10.0, float("inf")):
        means = {variant: statistics.mean(found) for (variant, at), found in values.items() if at == epsilon}
        print(f"epsilon {epsilon:g}" if epsilon < float("inf") else "NON-PRIVATE")
        for variant, mean in sorted(means.items(), key=lambda entry: -entry[1]):
            print(f"  {mean:.3f}  {variant}")
    for _, sentence in run.sayings:
        print(sentence)


if __name__ == "__main__":
    main()
