"""Compare what this tree and another revision release: python -m benchmarks.digests [--against REV] [JOB ...]

Both trees do the same jobs on this machine, by their command lines alone, so that modules may move: run the scenarios
that lie beside this file, which between them ask for every protocol under every trust and for nearly every option, and
do what commands.txt says. Compared are results, ledgers, models, pages, figures, plans of deployments and what commands
print, without keys, dates, seconds and versions. Texts are parts of their own: a new wording changes no values.

Exits 1 where something differs or fails.
"""

from __future__ import annotations

import argparse
import difflib
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from benchmarks.digests.artefacts import TEXTS, Artefacts
from benchmarks.digests.tables import write_tables
from benchmarks.digests.trees import FailedError, Job, Tree, jobs_in, unpack

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
_SHOWN, _WIDTH = 12, 200  # lines of a difference, and characters of a line


def compared(before: Artefacts, after: Artefacts) -> Iterator[str]:
    """Yield the names of the artefacts that differ, and below each the first lines that do.

    Examples:
        >>> list(compared({"audit values": ["bound: 0.9"]}, {"audit values": ["bound: 0.8"]}))
        ['  audit values', '    -bound: 0.9', '    +bound: 0.8']
    """
    for name in sorted({*before, *after}):
        old, new = before.get(name, []), after.get(name, [])
        if old != new:
            lines = itertools.islice(difflib.unified_diff(old, new, lineterm="", n=0), 2, None)
            changed = [line for line in lines if not line.startswith("@@")]
            yield f"  {name}"
            yield from (f"    {line[:_WIDTH]}" for line in changed[:_SHOWN])
            if len(changed) > _SHOWN:
                yield f"    and {len(changed) - _SHOWN} lines more"


def _told(job: Job, before: Future[Artefacts], after: Future[Artefacts], texts: bool) -> tuple[bool, list[str]]:
    """Return whether a job has given the same artefacts in both trees, and the lines that say so."""
    failed = [(side, one.exception()) for side, one in (("before", before), ("after", after)) if one.exception()]
    if failed:
        if unforeseen := [error for _, error in failed if error and not isinstance(error, FailedError)]:
            raise unforeseen[0]
        return False, [f"{job.name}: failed", *(f"  {side}: {error}" for side, error in failed)]
    old, new = (
        {name: one for name, one in found.result().items() if texts or not name.endswith(TEXTS)}
        for found in (before, after)
    )
    differing = list(compared(old, new))
    return not differing, [f"{job.name}: {'differs' if differing else 'same'} ({len(new)} artefacts)", *differing]


def main() -> None:
    """Print for every job whether it is the same, and what differs."""
    known = {job.name: job for job in jobs_in(sorted(HERE.glob("*.yaml")), HERE / "commands.txt")}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", nargs="*", help=f"all by default: {', '.join(known)}")
    parser.add_argument("--against", metavar="REV", default="origin/main", help="default: %(default)s")
    parser.add_argument("--values", action="store_true", help="leave texts out, where their wording was to change")
    chosen = parser.parse_args()
    if unknown := [name for name in chosen.job if name not in known]:
        parser.error(f"there is no job {', '.join(unknown)}; there are {', '.join(known)}")
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(os.cpu_count()) as pool:
        other = unpack(chosen.against, ROOT, Path(temporary, "code"))
        trees = [Tree.prepared(code, Path(temporary, side)) for code, side in ((other, "before"), (ROOT, "after"))]
        for tree in trees:
            write_tables(tree.folder)
            for path in (*HERE.glob("*.yaml"), *HERE.glob("inputs/*.yaml")):
                shutil.copy(path, tree.folder)
        jobs = [known[name] for name in chosen.job or known]
        began = [(job, [pool.submit(tree.artefacts, job) for tree in trees]) for job in jobs]
        alike = []
        for job, (before, after) in began:
            same, lines = _told(job, before, after, not chosen.values)
            alike.append(same)
            print(*lines, sep="\n", flush=True)
    print(f"{sum(alike)} of {len(alike)} jobs the same as {chosen.against}")
    raise SystemExit(0 if alike and all(alike) else 1)


if __name__ == "__main__":
    main()
