"""Which errors no test would notice: python -m benchmarks.mutants [PATH ...] [--share S] [--seed N] [--kind K] [--wide]

Makes mutants of the modules at PATH (by default the privacy mechanisms, secure sums, the party node and real parties),
each with one small error, and runs the tests of its module on each: those at the mirrored path and the examples in
docstrings; with `--wide` all tests of its folder, in which other modules use it. `--share` tries a random part of the
mutants, by `--seed`; `--kind` those of one kind: calls that are dropped, conditions that are never met, ends that a
comparison includes or not. Prints every mutant that survived and is not explained in survivors.yaml, and ends with the
numbers.

`--out FILE` keeps what was found, a line of JSON for each mutant; those that are killed there are not tried again.
Needs Cosmic Ray: pip install -e '.[dev,mutants]'. Runs on Linux and macOS.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.mutants.mutant import PRIVATE, Key, Mutant, explained, modules
from benchmarks.mutants.mutation import KINDS, mutants
from benchmarks.mutants.trials import Trials


def _tests_of(path: str, wide: bool) -> list[str]:
    """Return pytest's arguments for the mutants of a module: its examples and its tests, or all tests of its folder.

    `wide` selects the tests of the folder. Slow tests run too; tests that start servers do not.
    """
    module = Path(path)
    tests = Path("tests") / module.parent / ("" if wide else f"test_{module.name}")
    return ["-m", "not reproduction and not servers", path, str(tests)]


def main() -> None:
    """Try them, and tell which survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", default=PRIVATE, metavar="PATH")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--wide", action="store_true")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    root = Path(__file__).resolve().parents[2]
    trials, known, counts = Trials(root, chosen.jobs), explained(), Counter[str]()
    killed = _killed(chosen.out)
    for path in modules(root, chosen.paths):
        some, of_module = mutants(root, path, chosen.share, chosen.seed, chosen.kind), Counter[str]()
        untried = [*_untried(some, killed, of_module)]
        # A random part of all may have none of a module, whose tests need not be run then.
        tried = trials.outcomes(iter(untried), _tests_of(path, chosen.wide)) if untried else iter(())
        try:
            for mutant, outcome in tried:
                if chosen.out:
                    with chosen.out.open("a", encoding="utf-8") as file:
                        json.dump({"mutant": [*mutant.key, mutant.line], "outcome": outcome}, file)
                        file.write("\n")
                shown = "explained" if outcome == "survived" and mutant.key in known else outcome
                of_module[shown] += 1
                if shown == "survived":
                    print(f"{path}:{mutant.line}\n  - {mutant.was}\n  + {mutant.becomes}", flush=True)
        except RuntimeError as error:
            print(f"{path}: skipped, {error}", flush=True)
            continue
        counts += of_module
        print(f"{path}: {_told(of_module)}", flush=True)
    print(f"{counts.total()} mutants: {_told(counts)}; {1 - counts['survived'] / max(1, counts.total()):.1%} noticed")


def _killed(out: Path | None) -> set[Key]:
    if out is None or not out.exists():
        return set()
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    return {(path, was, becomes) for (path, was, becomes, _), outcome in map(dict.values, lines) if outcome == "killed"}


def _untried(some: Iterator[Mutant], killed: set[Key], counts: Counter[str]) -> Iterator[Mutant]:
    """Those that are not known to be killed, who are counted."""
    for mutant in some:
        if mutant.key in killed:
            counts["killed"] += 1
        else:
            yield mutant


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[name]} {name}" for name in ("killed", "timed out", "explained", "survived"))


if __name__ == "__main__":
    main()
