"""A SuperLink with TLS and node authentication, and real sites, each a process of its own."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.documentation.blocks import commands, fences
from benchmarks.documentation.contents import printed
from parties.site.accounts import Journal

ROOT = Path(__file__).resolve().parents[2]
PORT = "9092"  # of the page


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def environment() -> dict[str, str]:
    """Of a process that runs the code that is tested."""
    known = os.environ | {"FLWR_TELEMETRY_ENABLED": "0", "OMP_NUM_THREADS": "1"}
    return known | {"PYTHONPATH": os.pathsep.join([str(ROOT), known.get("PYTHONPATH", "")])}


class Trial:
    """A page that is followed in a folder, where sites go on serving until they are ended."""

    def __init__(self, folder: Path, **changes: str) -> None:
        self.folder, self.changes = folder, {PORT: str(free_port()), **changes}
        self.sites: dict[str, subprocess.Popen[bytes]] = {}

    def follow(self, page: str, since: str = "", until: str = "nothing") -> None:
        """Write its files, run its code and its commands, from one that begins with `since` to one with `until`."""
        for old, new in self.changes.items():
            page = page.replace(old, new)
        known = fences(page)
        first = next(place for place, fence in enumerate(known) if since in fence.text)
        for fence in known[first:]:
            if fence.language == "yaml":
                (self.folder / fence.text.split()[1]).write_text(fence.text)
            elif fence.language == "python":
                exec(compile(fence.text, "the page", "exec"), {"__name__": "page"})
            elif fence.language == "sh":
                for command in commands(fence):
                    if command.startswith(until):
                        return
                    self.do(command)

    def do(self, command: str) -> str:
        """Run one command; those of sites that serve go on."""
        if command.endswith("&"):
            self.serve(Path(shlex.split(command)[3]).parent.name)
            return ""
        if command.startswith("federation "):
            return printed(shlex.split(command)[1:], self.folder)
        subprocess.run(command, shell=True, check=True, cwd=self.folder)
        return ""

    def serve(self, site: str) -> None:
        """Start a site, or start it again."""
        [settings] = (self.folder / site).glob("*.toml")
        words = [sys.executable, "-m", "scenarios.cli", "party", "run", str(settings)]
        with (self.folder / site / "log").open("ab") as log:
            self.sites[site] = subprocess.Popen(
                words, cwd=self.folder, env=environment(), stdout=log, stderr=subprocess.STDOUT
            )

    def stop(self, site: str, how: signal.Signals = signal.SIGTERM) -> int:
        """End a site."""
        process = self.sites.pop(site)
        process.send_signal(how)
        return process.wait(40)

    def collecting(self, *words: str) -> subprocess.Popen[str]:
        """Begin to collect, in a process of its own."""
        command = [sys.executable, "-m", "scenarios.cli", "collect", "trial", *words]
        return subprocess.Popen(command, cwd=self.folder, env=environment(), stderr=subprocess.PIPE, text=True)

    def world(self) -> dict[str, Any]:
        """What is written about the first release."""
        known: dict[str, Any] = json.loads((self.folder / "trial/releases/001/world.json").read_text())
        return known

    def log(self, site: str) -> str:
        return (self.folder / site / "log").read_text()

    def events(self, site: str) -> list[str]:
        """What a site has noted, in order."""
        path = self.folder / site / "state" / "journal.jsonl"
        return [line["event"] for line in Journal(path, reading=True).lines]

    def close(self) -> None:
        for site in [*self.sites]:
            with suppress(subprocess.TimeoutExpired):
                self.stop(site)


def wait_until(done: Callable[[], bool], seconds: float = 200) -> None:
    """Wait for something that must happen in time."""
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)


@contextmanager
def following(folder: Path, until: str = "nothing", page: str = "three-sites", **changes: str) -> Iterator[Trial]:
    """A page of docs/deployment, followed in a folder, which is the current one meanwhile."""
    before = Path.cwd()
    os.chdir(folder)
    found = Trial(folder, **changes)
    try:
        found.follow((ROOT / f"docs/deployment/{page}.md").read_text(), until=until)
        yield found
    finally:
        found.close()
        os.chdir(before)


@contextmanager
def serving(folder: Path) -> Any:
    """The SuperLink of a deployment, as long as this lasts: collecting finds it running."""
    from scenarios.deployment.folder import Folder
    from scenarios.deployment.superlink import superlink

    known = Folder.opened(folder)
    with superlink(known, known.agreement) as link:
        yield link
