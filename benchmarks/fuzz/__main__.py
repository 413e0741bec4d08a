"""Tries mutated inputs: python -m benchmarks.fuzz [TARGET ...] [--first N] [--count N] [--seed S]

`scenarios` go through what `federation validate` and `run --dry-run` do, up to the first questions of a world;
`files` through the readers of data files and through `federation predict`; `messages` through the apps of nodes and
aggregator, which decode and answer them; `sites` (configurations, plans, journals) through `federation party check`;
`sums` through the parties and servers of secure sums. Every input is made from a real one (a seed, or one that came to
a place in the code where none had come), and what is tried follows from the seed and the count alone. Each has 5
seconds of processor time and 2 GiB of memory beside what its process had before.

A finding is an input that a user would see end in anything but one sentence: a traceback, a hang, or more memory. It is
kept in the output folder as TARGET-SEED-NUMBER-ROUTE.ENDING, beside a text that says what was found; --again FILE tries
such a file again. Exits 1 with findings.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections import Counter
from pathlib import Path

from benchmarks.fuzz.campaign import Campaign
from benchmarks.fuzz.files import Files
from benchmarks.fuzz.inputs import Input, Target
from benchmarks.fuzz.messages import Messages
from benchmarks.fuzz.scenarios import Scenarios
from benchmarks.fuzz.sites import Sites
from benchmarks.fuzz.sums import Sums
from benchmarks.fuzz.worker import Limits, Outcome

TARGETS: dict[str, type[Target]] = {target.name: target for target in (Scenarios, Files, Messages, Sites, Sums)}
_KEPT = re.compile(r"([a-z]+)-(\d+)-(\d+)-([\w+]+)\.\w+")
_ALIKE = 20  # findings of one place that are kept
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARROW_NUM_THREADS")


class Findings:
    """Keeps findings as files in a folder, of one place a few only, and tells of each place once."""

    def __init__(self, folder: Path, target: type[Target], seed: int) -> None:
        self._folder, self._target, self._seed = folder, target, seed
        self._places: Counter[str] = Counter()

    def keep(self, number: int, given: Input, outcome: Outcome) -> None:
        """Write the input, and beside it what was found."""
        self._places[outcome.place] += 1
        if self._places[outcome.place] > _ALIKE:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        name = f"{self._target.name}-{self._seed}-{number}-{given.route}"
        file = self._folder / f"{name}{self._target.suffix(given)}"
        file.write_bytes(given.content)
        file.with_suffix(f"{file.suffix}.txt").write_text(f"{outcome.kind}\n{outcome.text}", encoding="utf-8")
        if self._places[outcome.place] == 1:
            print(f"  {outcome.kind} at {outcome.place}: {file}", flush=True)


def kept(file: Path) -> tuple[type[Target], int, int, Input]:
    """The target, seed, number and input of a file that was kept. Raises `SystemExit` for another one."""
    found = _KEPT.fullmatch(file.name)
    if found is None or found[1] not in TARGETS:
        raise SystemExit(f"{file} is no file of a finding: TARGET-SEED-NUMBER-ROUTE.ENDING")
    return TARGETS[found[1]], int(found[2]), int(found[3]), Input(found[4], file.read_bytes())


def main() -> int:
    """Try, and say what was found; the number of findings of any kind makes the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *TARGETS], metavar="NAME", help=", ".join(TARGETS))
    whole = ", ".join(f"{target.count:,} {name}" for name, target in TARGETS.items())
    parser.add_argument("--count", type=int, help=f"inputs of each; default: {whole}")
    parser.add_argument("--first", type=int, default=0, help="go on at this number, after a part of --count N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("runs/fuzz"), help="folder of the findings")
    parser.add_argument("--again", type=Path, metavar="FILE", help="try a finding again")
    parser.add_argument("--places", action="store_true", help="say where inputs were refused, and how taken")
    asked = parser.parse_args()
    for name in _THREADS:
        os.environ[name] = "1"
    if asked.again is not None:
        target, seed, _, given = kept(asked.again)
        return _told(Campaign(target, seed, Limits(), 1, lambda _, __, outcome: print(outcome.text)), again=given)
    codes = []
    for name in asked.names or TARGETS:
        target = TARGETS[name]
        keep = Findings(asked.out, target, asked.seed).keep
        campaign = Campaign(target, asked.seed, Limits(), asked.jobs, keep)
        codes.append(
            _told(campaign, asked.count if asked.count is not None else target.count, asked.places, asked.first)
        )
    return max(codes)


def _told(campaign: Campaign, count: int = 0, places: bool = False, first: int = 0, again: Input | None = None) -> int:
    started = time.perf_counter()
    tally = campaign.run(count, first) if again is None else campaign.again(again)
    for place, times in tally.places.most_common() if places else ():
        print(f"  {times:8d} {place}")
    seconds = time.perf_counter() - started
    rest = ", ".join(f"{tally.outcomes[kind]} {kind}" for kind in ("refused", "taken"))
    print(f"{campaign.name}: {tally} ({rest}; {len(tally.places)} places, {seconds:.0f} seconds)", flush=True)
    return int(tally.findings > 0)


if __name__ == "__main__":
    sys.exit(main())
