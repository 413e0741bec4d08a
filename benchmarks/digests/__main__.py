"""Whether two revisions release the same bytes: python -m benchmarks.digests [--against REV] [--write] [SCENARIO ...]

Runs the scenarios that lie beside this file, which between them ask for every protocol and nearly every option, and
takes a SHA-256 of results.csv, of ledger.json and of the arrays of every released model. Compares with what another
revision of this repository makes of the same scenarios on this machine (--against; its files go to a temporary
folder), or else with the committed tables SCENARIO.json, which --write makes anew. A table carries its platform:
processor, BLAS and numpy round in their own ways, so on any other platform nothing is compared, and that is said.

Exits 1 where something differs.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from federation.contract.randomness import digest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RUN = "import sys; from scenarios.cli import main; sys.exit(main())"

Digests = dict[str, str]


def this_platform() -> dict[str, str]:
    """What decides how numbers are rounded: processor, its widest vectors, BLAS, numpy and Python."""
    from threadpoolctl import threadpool_info

    libraries = sorted({_library(one) for one in threadpool_info()})
    features: list[str] = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "vectors": " ".join(features),
        "blas": ", ".join(libraries),
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def _library(found: Mapping[str, Any]) -> str:
    """A numerical library, its release and the processor that it takes this one for."""
    return " ".join(str(found[name]) for name in ("internal_api", "version", "architecture") if name in found)


def digests(directory: Path) -> Digests:
    """SHA-256 by artefact of a run directory: two files as they are, and each model by its arrays."""
    files = [directory / name for name in ("results.csv", "ledger.json")]
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    for path in sorted((directory / "models").rglob("*.npz")):
        with np.load(path, allow_pickle=False) as stored:  # whatever the archive around the arrays looks like
            found[str(path.relative_to(directory))] = digest("", stored)
    return found


def run(tree: Path, scenario: Path, out: Path) -> Digests:
    """What the code in `tree` makes of a scenario. Raises `SystemExit` with what it printed when it fails."""
    paths = [str(tree), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-c", RUN, "run", str(scenario), "--out", str(out), "--keep-models"]
    ended = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{scenario.stem} failed in {tree}:\n{ended.stdout}{ended.stderr}")
    return digests(out)


def unpack(revision: str, folder: Path) -> None:
    """Put the files of a revision into a folder, and beside them what an installation says of their entry points."""
    archive = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    metadata = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines: list[str] = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in entries.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """One line for each artefact that is not the same on both sides."""
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield f"{name}: {before.get(name, 'absent')[:12]} -> {after.get(name, 'absent')[:12]}"


def main() -> None:
    """Print for every scenario whether it is the same, and what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", nargs="*", help="names of scenarios beside this file; all of them by default")
    parser.add_argument("--against", metavar="REV", help="compare with this revision in place of the tables")
    parser.add_argument("--write", action="store_true", help="write the tables")
    arguments = parser.parse_args()
    chosen = [HERE / f"{name}.yaml" for name in arguments.scenario] or sorted(HERE.glob("*.yaml"))
    here, changed = this_platform(), 0
    with tempfile.TemporaryDirectory() as temporary:
        other = Path(temporary) / "tree"
        if arguments.against:
            unpack(arguments.against, other)
        for scenario in chosen:
            name, table = scenario.stem, scenario.with_suffix(".json")
            after = run(ROOT, scenario, Path(temporary) / f"{name}-after")
            if arguments.against:
                before = run(other, scenario, Path(temporary) / f"{name}-before")
            elif arguments.write:
                table.write_text(json.dumps({"platform": here, "digests": after}, indent=1) + "\n")
                print(f"{name}: wrote {len(after)} digests")
                continue
            else:
                known = json.loads(table.read_text())
                if known["platform"] != here:
                    print(f"{name}: not compared, as the table is of another platform: {known['platform']}")
                    continue
                before = known["digests"]
            found = list(differences(before, after))
            changed += bool(found)
            print(f"{name}: {'differs' if found else 'same'} ({len(after)} artefacts)", *found, sep="\n  ", flush=True)
    raise SystemExit(1 if changed else 0)


if __name__ == "__main__":
    main()
