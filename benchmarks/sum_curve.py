"""What secure sums cost up to a million parties, by how often they need which operation, and published neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.common import heads
from federation.contract.errors import InputError
from federation.secure_aggregation.plan import Adversary, neighbourhood
from scenarios.commands.privacy_tables import masked_sums

COUNTS = (100, 1000, 10_000, 100_000, 1_000_000)
SHARE = 0.1  # of the parties is corrupt, and as many are absent
# Neighbours / threshold for 100 to a million parties of whom 5 % are corrupt and a part is absent, as the tests of
# another implementation of Bell et al. 2020 have them: github.com/google-parfait/federated-compute at commit e7157f06,
# fcp/secagg/server/graph_parameter_finder_test.cc. Its malicious server follows the protocol until it has the keys.
PUBLISHED: dict[tuple[Adversary, float], tuple[tuple[int, int], ...]] = {
    ("semi_honest", 0.05): ((12, 6), (30, 17), (34, 20), (36, 21), (38, 22)),
    ("semi_honest", 0.33): ((28, 6), (72, 24), (86, 29), (96, 32), (102, 34)),
    ("active", 0.05): ((16, 11), (52, 37), (62, 44), (68, 48), (74, 52)),
    ("active", 0.33): ((72, 39), (398, 223), (746, 420), (882, 496), (970, 545)),
}
CORRUPT = 0.05
BITS = 40  # of statistical security there, and here in the comparison
LARGER = (10**8, 10**9)  # counts for which nothing is published there


def show_curve(out: str) -> None:
    """A line for each number of parties and kind of servers; a figure of them where a file is named."""
    heads("parties | servers | k/t | a party, ms | sent, kB | received, kB | server, s | in, GB | out, GB")
    found = []
    for count in COUNTS:
        for row in _costs(count):
            found.append((count, row))
            ring = f"{row['neighbours']}/{row['threshold']}" if row["neighbours"] else "-"
            print(
                f"| {count} | {row['servers']} | {ring} | {1e3 * row['party_seconds']:.3g} "
                f"| {row['party_sends'] / 1e3:.3g} | {row['party_receives'] / 1e3:.3g} | {row['server_seconds']:.3g} "
                f"| {row['server_receives'] / 1e9:.3g} | {row['server_sends'] / 1e9:.3g} |",
                flush=True,
            )
    if out:
        _draw(found, Path(out))


def show_neighbours() -> None:
    """Ours beside the published ones, and for more parties."""
    heads("server | absent, % | of | " + " | ".join(f"{count:,}" for count in (*COUNTS, *LARGER)))
    for (adversary, absent), known in PUBLISHED.items():
        published = [f"{near}/{threshold}" for near, threshold in known] + ["-"] * len(LARGER)
        ours = [_ring(count, adversary, absent) for count in (*COUNTS, *LARGER)]
        for of, cells in (("published", published), ("ours", ours)):
            print(f"| {adversary} | {100 * absent:.0f} | {of} | {' | '.join(cells)} |", flush=True)


def _costs(parties: int) -> Iterator[dict[str, Any]]:
    """Of each kind of servers that can carry such a sum out."""
    record, _ = masked_sums(parties=parties, corrupt=SHARE, dropout=SHARE, numbers=50, quorum=None)
    yield from (row for row in record["modes"] if row["party_seconds"] is not None)


def _ring(parties: int, adversary: Adversary, absent: float) -> str:
    try:
        found = neighbourhood(parties, round(CORRUPT * parties), round(absent * parties), adversary, BITS)
    except InputError:  # no number of neighbours does
        return "-"
    return f"{found.neighbours}/{found.threshold}"


def _draw(rows: list[tuple[int, dict[str, Any]]], file: Path) -> None:
    """Processor time and traffic of a party, and of the servers, against the number of parties."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.2), layout="constrained")
    panels = figure.subplots(1, 4)
    shown: dict[str, Callable[[dict[str, Any]], float]] = {
        "a party, ms": lambda row: 1e3 * row["party_seconds"],
        "a party sends and receives, kB": lambda row: (row["party_sends"] + row["party_receives"]) / 1e3,
        "servers, s": lambda row: row["server_seconds"],
    }
    for axes, (name, value) in zip(panels, shown.items(), strict=False):
        for servers in dict.fromkeys(row["servers"] for _, row in rows):
            points = [(count, value(row)) for count, row in rows if row["servers"] == servers]
            axes.loglog(*zip(*points, strict=True), marker="o", label=servers)
        axes.set(xlabel="parties", title=name)
    panels[0].legend(fontsize=7, loc=(0.3, 0.15))
    for (adversary, absent), known in PUBLISHED.items():
        style = {"color": "C0" if adversary == "active" else "C1", "alpha": 1.0 if absent == CORRUPT else 0.4}
        panels[3].loglog(COUNTS, [near for near, _ in known], "x:", **style, label=f"{adversary}, {absent:.0%} absent")
        ours = [_ring(count, adversary, absent) for count in COUNTS]
        points = [(count, int(ring.split("/")[0])) for count, ring in zip(COUNTS, ours, strict=True) if ring != "-"]
        panels[3].loglog(*zip(*points, strict=True), "o-", **style)
    panels[3].set(xlabel="parties", title="neighbours; x: published", ylim=4)
    panels[3].legend(fontsize=6)
    for axes in panels:
        axes.title.set_fontsize(9)
        axes.grid(alpha=0.3)
    with rc_context({"svg.hashsalt": "secure sums", "svg.fonttype": "none"}):
        figure.savefig(file, metadata={"Date": None})
