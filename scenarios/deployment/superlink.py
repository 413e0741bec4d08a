"""The SuperLink of a deployment: a running one, or one that is started behind a gate and stopped again.

Flower serves all its interfaces on one port. The gate (`gated`) limits what other machines can do:

- They reach only the interface for sites. A client that reaches the interface for starting runs can run its own code on
  the SuperLink's machine. That interface is therefore for programs of this machine alone.
- They send messages of bounded size. The SuperLink accepts messages of any size into memory, so that one site could
  crash it and the aggregator.
- They send replies only. The SuperLink stores unsolicited replies until its disk is full.
"""

import asyncio
import hashlib
import json
import os
import resource
import shlex
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
from flwr.cli.build import build_fab_from_disk
from flwr.common.serde import fab_to_proto, user_config_to_proto
from flwr.proto.control_pb2 import (
    ListNodesRequest,
    ListRunsRequest,
    RegisterNodeRequest,
    StartRunRequest,
    StopRunRequest,
)
from flwr.supercore.control.control_http_client import ControlHttpClient
from flwr.supercore.fab import Fab
from flwr.supercore.interceptors.http.runtime_version import RuntimeVersionHttpInterceptor
from flwr.supercore.primitives.asymmetric import public_key_to_bytes

from federation.contract.errors import FederationError, InputError
from federation.contract.files import read_object, write_lasting
from federation.contract.query import CODE
from federation.signed_messages.agreement import Agreement
from scenarios.deployment.certificates import AUTHORITY, SERVER, SERVER_KEY, require_valid
from scenarios.deployment.folder import Folder
from scenarios.reports.guarantee_page import template

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Served = Callable[[Message, Receive, Send], Awaitable[None]]

FOR_SITES = "/v1/fleet/"
NAMES = f"{FOR_SITES}push-messages"  # where a site says what it will send: a message, and the names of its objects
LONGEST = 8 * CODE.numbers  # bytes of an answer, whatever was asked
OVERHEAD = 2**16  # bytes of what a site sends at a time, beside a letter
LARGEST_NAMES = 1024  # bytes: for a letter it takes half as many, and ten objects have no room
_MOST_DIGITS = 20  # of a length that is read
_LAST_CALLS = 2  # seconds for which calls that are open hold up the end
_LOOPBACK = ("127.0.0.1", "::1", "::ffff:127.0.0.1")
_AT_ONCE, _COMING = 32, 60.0  # calls of one address at a time, and seconds until one has come in full
_QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
_UNWANTED = ("FLWR_INTERNAL_GRPC_CONTROL_API", "FLWR_INTERNAL_GRPC_FLEET_API", "FLWR_DATABASE", "FORWARDED_ALLOW_IPS")


def gated(served: Served, longest: int = LONGEST) -> Served:
    """An ASGI application of which other machines reach the paths below `/v1/fleet/` and nothing else.

    What comes there says beforehand how long it is, and is no longer than what sites have to send, whose longest letter
    has so many bytes. It is handed on once it has come in full, of which an address has a minute, and some calls at a
    time; and of letters those alone that reply to one.
    """
    calls: Counter[str] = Counter()

    async def gate(scope: Message, receive: Receive, send: Send) -> None:
        client = (scope.get("client") or ("",))[0]
        path = str(scope.get("path", ""))
        if scope["type"] == "lifespan" or (client in _LOOPBACK and not path.startswith(FOR_SITES)):
            await served(scope, receive, send)
            return
        refused = _refused(path, scope, longest + OVERHEAD)
        if refused is None and calls[client] >= _AT_ONCE:
            refused = HTTPStatus.SERVICE_UNAVAILABLE
        if refused is None:
            calls[client] += 1
            try:
                refused, body = await _come(path, receive)
                if refused is None:
                    await served(scope, _again(body, receive), send)
            finally:
                calls[client] -= 1
                if not calls[client]:
                    del calls[client]
        if refused is not None and scope["type"] == "http":
            empty = [(b"content-length", b"0"), (b"connection", b"close")]
            await send({"type": "http.response.start", "status": int(refused), "headers": empty})
            await send({"type": "http.response.body", "body": b""})

    return gate


async def _come(path: str, receive: Receive) -> tuple[HTTPStatus | None, bytes]:
    """What a site sends, in full; or why it is not taken."""
    body, more = bytearray(), True
    try:
        async with asyncio.timeout(_COMING):
            while more:
                part = await receive()
                if part["type"] != "http.request":  # whoever sent it has gone
                    return HTTPStatus.BAD_REQUEST, b""
                body += part.get("body", b"")
                more = part.get("more_body", False)
    except TimeoutError:
        return HTTPStatus.REQUEST_TIMEOUT, b""
    return HTTPStatus.FORBIDDEN if path == NAMES and not _replies(bytes(body)) else None, bytes(body)


def _replies(names: bytes) -> bool:
    """Whether what a site says it will send is a reply: Flower takes all else for letters of the coordinator."""
    from flwr.proto.fleet_pb2 import PushMessagesRequest
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        messages = PushMessagesRequest.FromString(names).messages_list
    except DecodeError:
        return False
    return len(messages) > 0 and all(message.metadata.reply_to_message_id for message in messages)


def _again(body: bytes, receive: Receive) -> Receive:
    """What gives all that has come once more, and then what comes after it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return waiting.pop() if waiting else await receive()

    return received


def _refused(path: str, scope: Message, largest: int) -> HTTPStatus | None:
    """Why a call is not taken, before any of it is read; None where it is."""
    if scope["type"] != "http" or not path.startswith(FOR_SITES):
        return HTTPStatus.FORBIDDEN
    headers = dict(scope.get("headers", ()))
    length = headers.get(b"content-length", b"")
    if b"transfer-encoding" in headers or not length.isdigit():  # which would count in place of the length
        return HTTPStatus.LENGTH_REQUIRED
    most = LARGEST_NAMES if path == NAMES else largest
    return HTTPStatus.REQUEST_ENTITY_TOO_LARGE if len(length) > _MOST_DIGITS or int(length) > most else None


def main() -> None:
    """Flower's `flower-superlink`, with its arguments; and `--longest-letter`, in bytes, that a site has to send.

    It tells nobody that it is there, and nothing in the environment opens the gate or another port. It may have as many
    connections as this user's processes may have at most.
    """
    os.environ.update(_QUIET)
    for name in _UNWANTED:
        os.environ.pop(name, None)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    import uvicorn
    from flwr.superlink.cli.flower_superlink import flower_superlink

    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--longest-letter", type=int, default=LONGEST)
    known, others = parser.parse_known_args()
    run = uvicorn.run
    uvicorn.run = lambda app, **settings: run(
        gated(app, known.longest_letter), **settings, timeout_graceful_shutdown=_LAST_CALLS
    )
    sys.argv = ["flower-superlink", *others]
    flower_superlink()


if __name__ == "__main__":
    main()


_STARTED = "process.json"  # in that folder: what was started and has yet to be ended
_DAMAGED = "remove it, and end the SuperLink by hand"
_OF_STATE, _OF_BEGINNING, _ZOMBIE = 0, 19, "Z"  # places in /proc/PID/stat behind the name, and who has ended
STATE = "superlink"  # folder in that of the deployment: the SuperLink's database, log and home

_HERE = "127.0.0.1"
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1", "[::1]")
_STARTING, _STOPPING, _PAUSE = 60.0, 30.0, 0.3  # seconds


@dataclass(frozen=True)
class SuperLink:
    """The interface of a SuperLink that registers sites and starts runs."""

    client: Any

    def register(self, agreement: Agreement) -> dict[str, int]:
        """Have it know the members' keys; by which ids it knows them."""
        known = {node.public_key: node.node_id for node in self.nodes()}
        found = {}
        for site, key in zip(agreement.members, agreement.keys, strict=True):
            public = public_key_to_bytes(key)
            if public not in known:
                request = RegisterNodeRequest(public_key=public, name=site.name)
                known[public] = self.client.RegisterNode(request).node_id
            found[site.name] = known[public]
        return found

    def nodes(self) -> list[Any]:
        """What it knows of sites."""
        return list(self.client.ListNodes(ListNodesRequest()).nodes_info)

    def online(self) -> set[int]:
        """The ids of the sites that are connected."""
        return {node.node_id for node in self.nodes() if node.status == "online"}

    def start(self, config: Mapping[str, str | float]) -> int:
        """Start an exchange by a run configuration; the run's id."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "pyproject.toml").write_text(template("exchange.toml").render() + "\n")
            Path(folder, "nothing.py").write_text("")  # an app needs a file; the code is installed here
            content = build_fab_from_disk(Path(folder))
        fab = fab_to_proto(Fab(hashlib.sha256(content).hexdigest(), content, {}))
        override = user_config_to_proto(dict(config))
        return int(self.client.StartRun(StartRunRequest(fab=fab, override_config=override, federation="")).run_id)

    def finished(self, run: int) -> bool:
        """Whether a run has ended, as one does that is not known."""
        runs = self.client.ListRuns(ListRunsRequest(run_id=run)).run_dict
        return run not in runs or runs[run].status.status == "finished"

    def stop(self, run: int) -> None:
        """Stop a run, if it goes on."""
        with suppress(httpx.HTTPError):
            self.client.StopRun(StopRunRequest(run_id=run))


@contextmanager
def superlink(folder: Folder, agreement: Agreement) -> Iterator[SuperLink]:
    """The SuperLink of a deployment: the one that listens at its port, or one that runs as long as this lasts.

    One that was started here by a process that was killed, and could not end it, ends with this. Raises `InputError`
    where none can be reached or started, and for certificates that sites would not accept, and `FederationError` where
    it is lost on the way.
    """
    host, _, port = agreement.superlink.rpartition(":")
    running = _reached(folder, f"{_HERE}:{port}") or _reached(folder, agreement.superlink)
    started = folder.path / STATE / _STARTED
    own = running is None or _left_over(started)
    if running is None:
        require_valid(folder.path, host)
        process = _started(folder, _HERE if host in _LOOPBACK_NAMES else "0.0.0.0", port, agreement.longest_reply)
        known = {name: [one, _status(one)[1]] for name, one in (("process", process.pid), ("by", os.getpid()))}
        try:
            write_lasting(started, json.dumps(known).encode())
        except BaseException:  # nobody would know of it, and end it
            _stop(process.pid, _status(process.pid)[1])
            raise
    try:
        yield running or _up(folder, process, f"{_HERE}:{port}")
    except httpx.HTTPError as error:
        folder.require_room()
        said = str(error).partition("\n")[0]
        raise FederationError(
            f"the SuperLink at port {port} has ended or does not answer ({said:.200}); collect again, which goes on "
            "where this was"
        ) from error
    finally:
        if own:
            number, born = read_object(started, _DAMAGED)["process"]
            _stop(int(number), str(born))
            started.unlink()


def _left_over(started: Path) -> bool:
    """Whether whoever has started a SuperLink has ended, and has not ended it."""
    if not started.exists():
        return False
    number, born = read_object(started, _DAMAGED)["by"]
    return _status(int(number))[1] != str(born)


def _reached(folder: Folder, address: str) -> SuperLink | None:
    """The SuperLink at an address; None where nothing listens. Raises `InputError` for something else."""
    interceptors = [RuntimeVersionHttpInterceptor("flwr CLI")]
    try:
        client = ControlHttpClient.from_server_address(
            address, False, (folder.path / AUTHORITY).read_bytes(), interceptors
        )
        found = SuperLink(client)
        found.nodes()
    except httpx.ConnectError as error:
        if isinstance(_root(error), ssl.SSLError):
            raise InputError(
                f"what listens at {address} does not show the certificate of this deployment ({_root(error)}); end it, "
                f"or start it with {folder.path / SERVER} and {folder.path / SERVER_KEY}"
            ) from error
        return None
    except httpx.TimeoutException:
        return None
    except httpx.HTTPError as error:
        raise InputError(
            f"what listens at {address} is no SuperLink that takes runs from here ({error!s:.200}); end it, or run "
            "collect on the machine of the SuperLink"
        ) from error
    return found


def _root(error: BaseException) -> BaseException:
    """What an error goes back to."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error


def _started(folder: Folder, host: str, port: str, longest: int) -> subprocess.Popen[bytes]:
    own = folder.path / STATE
    own.mkdir(mode=0o700, exist_ok=True)
    scripts = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    # Flower starts programs of its own by their names.
    environment = {**os.environ, "PATH": scripts, "FLWR_HOME": str(own / "home")}
    command = [sys.executable, "-m", "scenarios.deployment.superlink", "--host", host, "--port", port]
    command += ["--ssl-certfile", str(folder.path / SERVER), "--ssl-keyfile", str(folder.path / SERVER_KEY)]
    command += ["--ssl-ca-certfile", str(folder.path / AUTHORITY), "--database", str(own / "state.db")]
    command += ["--longest-letter", str(longest)]
    command += ["--enable-supernode-auth", "--disable-runtime-dependency-installation"]
    umask = os.umask(0o077)
    try:
        with (own / "log").open("ab") as log:
            log.write(f"FLWR_HOME={environment['FLWR_HOME']} {shlex.join(command)}\n".encode())
            log.flush()
            # In a session of its own: an interrupt from the keyboard is for the program that has started it.
            return subprocess.Popen(
                command, env=environment, stdout=log, stderr=subprocess.STDOUT, cwd=own, start_new_session=True
            )
    finally:
        os.umask(umask)


def _up(folder: Folder, process: subprocess.Popen[bytes], address: str) -> SuperLink:
    deadline = time.monotonic() + _STARTING
    while time.monotonic() < deadline:
        if (found := _reached(folder, address)) is not None:
            return found
        if process.poll() is not None:
            break
        time.sleep(_PAUSE)
    raise InputError(
        f"the SuperLink could not be started at {address}; see the last lines of {folder.path / STATE / 'log'}"
    )


def _status(process: int) -> tuple[str, str]:
    """The state of a process, and when it began, in the words of the kernel; empty texts where there is none."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "", ""
    return words[_OF_STATE], words[_OF_BEGINNING]


def _stop(process: int, born: str) -> None:
    """End what was started, with what it has started itself; nothing where the number is another process's by now.

    Raises `FederationError` where it cannot be ended.
    """
    if not born or _status(process)[1] != born:
        return
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGTERM)
    _ends(process, born)
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    if not _ends(process, born):
        raise FederationError(f"the SuperLink, process {process}, cannot be ended; end it by hand")


def _ends(process: int, born: str) -> bool:
    """Whether a process ends, which is given some time to do so."""
    deadline = time.monotonic() + _STOPPING
    while time.monotonic() < deadline:
        state, beginning = _status(process)
        if beginning != born or state == _ZOMBIE:
            return True
        time.sleep(_PAUSE)
    return False
