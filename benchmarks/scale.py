"""What a run costs as the number of parties grows: python -m benchmarks.scale [--engine inline|ray] [--out FILE.png]

Runs the scenario `scale` with 1,000 to 100,000 parties of 5 rows each, same public rows, and prints for each the whole
run, seconds and bytes per party and peak memory; then the ratio of the per-party figures at the largest K to those at
10,000, below which the fixed costs of a run show. Draws the cost curve where --out says. Seconds per party are the
collecting phase (messages, training, votes, counting) of one world; a first small run pays for imports.
"""

from __future__ import annotations

import argparse
import resource
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import fastest, run_of

COUNTS = (1_000, 3_000, 10_000, 30_000, 100_000)
REFERENCE = 10_000


@dataclass(frozen=True)
class Cost:
    """Of one run: seconds of the whole and of collecting, bytes that a party sends, this process's peak so far."""

    parties: int
    whole: float
    collecting: float
    bytes_per_party: float
    peak_mebibytes: float

    @property
    def microseconds_per_party(self) -> float:
        """Of collecting."""
        return 1e6 * self.collecting / self.parties


def measure(parties: int, engine: str) -> Cost:
    """Run the scenario once with so many parties."""
    overrides = [f"parties.count={parties}", f"engine.kind={engine}"]
    whole, run = fastest(lambda: run_of("scale", overrides=overrides), 1)
    sent = {row["value"] for row in run.rows if row["metric"] == "bytes_per_party"}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Cost(parties, whole, run.costs.seconds["collect"], max(sent), peak)


def draw(costs: list[Cost], file: Path) -> None:
    """The cost curve: seconds of a run and microseconds per party against the number of parties."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.2), layout="constrained")
    parties = [cost.parties for cost in costs]
    whole, each = figure.subplots(1, 2)
    whole.loglog(parties, [cost.whole for cost in costs], marker="o", label="whole run")
    whole.loglog(parties, [cost.collecting for cost in costs], marker="s", label="collecting")
    whole.set(xlabel="parties", ylabel="seconds")
    whole.legend()
    each.semilogx(parties, [cost.microseconds_per_party for cost in costs], marker="s")
    each.set(xlabel="parties", ylabel="microseconds per party", ylim=(0, None))
    for axes in (whole, each):
        axes.grid(alpha=0.3)
    figure.savefig(file, dpi=150)


def main() -> None:
    """Print one line per number of parties, then the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=("inline", "ray"), default="inline")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    measure(COUNTS[0], arguments.engine)
    costs = []
    print(f"{'parties':>8} {'run s':>8} {'collect s':>10} {'us/party':>9} {'bytes/party':>12} {'peak MiB':>9}")
    for parties in COUNTS:
        cost = measure(parties, arguments.engine)
        costs.append(cost)
        print(
            f"{cost.parties:8d} {cost.whole:8.2f} {cost.collecting:10.2f} {cost.microseconds_per_party:9.1f} "
            f"{cost.bytes_per_party:12.0f} {cost.peak_mebibytes:9.0f}"
        )
    for reference in (COUNTS[0], REFERENCE):
        small = next(cost for cost in costs if cost.parties == reference)
        last = costs[-1]
        print(
            f"{last.parties} over {reference} parties: seconds per party x "
            f"{last.microseconds_per_party / small.microseconds_per_party:.2f}, "
            f"bytes per party x {last.bytes_per_party / small.bytes_per_party:.2f}"
        )
    if arguments.out is not None:
        draw(costs, arguments.out)
        print(f"drew {arguments.out}")


if __name__ == "__main__":
    main()
