"""Trees of files of this repository, and the jobs that each does by its own command line, in a folder of its own."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.digests.artefacts import Artefacts, artefacts_in, artefacts_of

RUN = "import sys; from scenarios.cli import main; sys.exit(main())"
_TOOLS = ("cp", "mkdir")
_DONE = (0, 5)  # 5: an audit has no power, which a quick one need not have
_ENVIRONMENT = {"COLUMNS": "120", "NO_COLOR": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Job:
    """Commands that follow on each other in one folder: arguments of `federation`, or one of `_TOOLS` with its own."""

    name: str
    commands: tuple[str, ...]


class FailedError(Exception):
    """A command that ended with an error, and what it said."""


@dataclass(frozen=True)
class Tree:
    """Code, what an installation says of its entry points, and the folder where its jobs are done."""

    code: Path
    metadata: Path
    folder: Path

    @classmethod
    def prepared(cls, code: Path, folder: Path) -> Tree:
        """Return the tree of the code in a folder, with metadata beside it."""
        made = cls(code, folder / "metadata", folder / "jobs")
        made.folder.mkdir(parents=True)
        _describe(code, made.metadata)
        return made

    def artefacts(self, job: Job) -> Artefacts:
        """Do a job and return what has come of it. Raises `FailedError` with what a command said that fails."""
        folder = self.folder / job.name
        folder.mkdir()
        found: Artefacts = {}
        for command in job.commands:
            arguments = shlex.split(command)
            tool = arguments[0] in _TOOLS
            ended = subprocess.run(
                arguments if tool else [sys.executable, "-c", RUN, *arguments],
                cwd=folder,
                env={**os.environ, **_ENVIRONMENT, "PYTHONPATH": f"{self.metadata}{os.pathsep}{self.code}"},
                capture_output=True,
                text=True,
                check=False,
            )
            if ended.returncode not in _DONE:
                raise FailedError(
                    f"{command}: exit code {ended.returncode}\n{ended.stdout[-500:]}{ended.stderr[-2000:]}"
                )
            if not tool:
                found |= {f"$ {command} values": []} | artefacts_of(f"$ {command}", ended.stdout, self.folder)
                found[f"$ {command} values"].append(f"exit code {ended.returncode}")
        return found | artefacts_in(folder, self.folder)


def unpack(revision: str, root: Path, folder: Path) -> Path:
    """Put the files of a revision into a folder. Raises `SystemExit` where git does not know it."""
    archived = subprocess.run(["git", "archive", revision], cwd=root, capture_output=True, check=False)
    if archived.returncode:
        raise SystemExit(f"--against {revision}: {archived.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archived.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


def jobs_in(scenarios: Sequence[Path], commands: Path) -> list[Job]:
    """Return a job for each scenario, and one for each paragraph of a file of commands, whose first line names it."""
    each = ("run ../{0} --out run --keep-models --quiet", "validate ../{0} --json")
    found = [Job(path.stem, tuple(command.format(path.name) for command in each)) for path in scenarios]
    for paragraph in commands.read_text().strip().split("\n\n"):
        title, *lines = paragraph.splitlines()
        found.append(Job(title.removeprefix("# "), tuple(lines)))
    return found


def _describe(code: Path, folder: Path) -> None:
    """Write what an installation of a tree would say of it: its version and entry points."""
    project = tomllib.loads((code / "pyproject.toml").read_text())["project"]
    described = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines: list[str] = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in entries.items())]
    (described / "entry_points.txt").write_text("\n".join(lines) + "\n")
