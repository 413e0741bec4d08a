"""What the default costs when ten thousand parties are asked, beside its former forms, in one run and in turn."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stderr
from typing import Any

from benchmarks.common import run_of
from benchmarks.defaults.jobs import Job
from benchmarks.defaults.part import Asked, Bar
from benchmarks.defaults.records import Record
from benchmarks.defaults.sets import Prepared

PARTIES, QUICK = 10_000, 1_000
ROUNDS = 3  # of which the fastest counts
DEFAULT, BALLOTS = "default", "probabilities"
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    DEFAULT: {},
    BALLOTS: {"share": "raw", "submit": "votes", "ballot": "probabilities"},
    "labels": {"share": "raw", "submit": "votes", "ballot": "labels"},
}


def no_jobs(sets: Sequence[Prepared], asked: Asked) -> list[Job]:
    """None: what is timed must not run beside other things."""
    return []


def show(records: Iterable[Record], asked: Asked) -> list[Bar]:
    """Measures and prints seconds of the collecting phase, and bytes that a party sends, for one epsilon."""
    parties = QUICK if asked.quick else PARTIES
    found: dict[str, tuple[float, float]] = {}
    for _ in range(ROUNDS):
        for name, options in VARIANTS.items():
            seconds, sent = _measured(parties, options)
            found[name] = min(seconds, found.get(name, (seconds, sent))[0]), sent
    print(f"\nscenario `scale` with {parties} parties, epsilon 1: fastest of {ROUNDS} rounds")
    print(f"{'':16}collecting s   us per party   over default   bytes per party")
    whole = found[DEFAULT][0]
    for name, (seconds, sent) in found.items():
        print(f"{name:16}{seconds:12.2f}{1e6 * seconds / parties:15.1f}{seconds / whole:15.2f}{sent:18.0f}")
    return [Bar(f"collecting over that of ballots of {BALLOTS}", whole / found[BALLOTS][0], most=1.0)]


def _measured(parties: int, options: Mapping[str, Any]) -> tuple[float, float]:
    """Seconds of collecting, and bytes per party."""
    settings = [f"parties.count={parties}", "engine.kind=inline", "privacy.epsilon=[1]", "trials.noise=1"]
    pairs = ", ".join(f"{name}: {value}" for name, value in {"kind": "soft_vote", **options}.items())
    with redirect_stderr(io.StringIO()):
        run = run_of("scale", overrides=[*settings, f"protocols=[{{{pairs}}}]"])
    sent = max(row["value"] for row in run.rows if row["metric"] == "bytes_per_party")
    return run.costs.seconds["collect"], sent
