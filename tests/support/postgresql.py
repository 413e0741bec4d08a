"""A PostgreSQL server of a test's own, at a port of this machine, where its programs and a driver are installed."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.trials import free_port

OWNER, PASSWORD = "owner", "secret of the owner"
_SERVANT = "nobody"  # whom the server runs as where the tests run as root, which it refuses


@dataclass(frozen=True)
class Server:
    """One that runs or does not: `start` and `stop` it. `port` is where it listens."""

    folder: Path
    port: int
    programs: Path

    def url(self, user: str = OWNER, password: str = "secret%20of%20the%20owner", base: str = "postgres") -> str:
        """An address as a site has it."""
        return f"postgresql+psycopg://{user}:{password}@127.0.0.1:{self.port}/{base}"

    def do(self, *statements: str) -> None:
        """Run statements as the owner of everything."""
        import psycopg

        known = {"host": "127.0.0.1", "port": self.port, "user": OWNER, "password": PASSWORD, "dbname": "postgres"}
        with psycopg.connect(**known, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def start(self) -> None:
        """Returns once it takes connections."""
        settings = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder} -c fsync=off"
        self._run("pg_ctl", "-D", "data", "-o", settings, "-l", "log", "-w", "start")

    def stop(self) -> None:
        """Ends connections, too."""
        self._run("pg_ctl", "-D", "data", "-m", "fast", "-w", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        servant = {"user": _SERVANT, "group": "nogroup", "extra_groups": []} if os.getuid() == 0 else {}
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([self.programs / program, *arguments], check=True, cwd=self.folder, **quiet, **servant)


@contextmanager
def postgresql() -> Iterator[Server]:
    """A new server, which has ended afterwards; skips the test where none is installed."""
    pytest.importorskip("sqlalchemy")
    pytest.importorskip(
        "psycopg", reason="no driver for PostgreSQL: pip install 'psycopg[binary]'", exc_type=ImportError
    )
    found = shutil.which("initdb") or next(map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))), None)
    if found is None:
        pytest.skip("no PostgreSQL server is installed: apt install postgresql")
    with tempfile.TemporaryDirectory() as name:
        server = Server(Path(name), free_port(), Path(found).resolve().parent)
        (server.folder / "password").write_text(PASSWORD)
        if os.getuid() == 0:
            for path in (server.folder, server.folder / "password"):
                shutil.chown(path, _SERVANT, "nogroup")
        server._run("initdb", "-D", "data", "-U", OWNER, "-A", "scram-sha-256", "--pwfile", "password", "--no-sync")
        server.start()
        try:
            yield server
        finally:
            server._run("pg_ctl", "-D", "data", "-m", "immediate", "-w", "stop")
