"""The connection of this process to Ray: own processes on this machine, or an existing cluster.

`hush` keeps libraries from writing to the terminal; handlers of their loggers still receive every message.
"""

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import ray
from ray._private.services import canonicalize_bootstrap_address

from federation.contract.errors import FederationError, InputError
from federation.engines.last_words import LastWords, answers
from federation.engines.nodes import processors

_OBJECT_STORE = 1 << 30  # bytes; Ray's default takes a third of the machine
_REACHABLE = 5.0  # seconds for a cluster's port to answer; Ray itself tries for minutes and then ends the process
_LOOK = 0.05  # seconds between looks at a cluster, each of which is two connections
_ESSENTIAL = ("gcs_server", "raylet")  # Ray's names of what a head and a node consist of
_ENDED = (
    "Ray has ended in the midst of this run: look for lack of memory, or for who ended it; finished worlds, if any, "
    "are kept, and --resume goes on with them"
)
_QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": "INFO", "configure_logging": True}
_OFF = ("ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "ENABLE_UV_RUN_RUNTIME_ENV", "DEDUP_LOGS")  # of Ray's


def connect(address: str | None, workers: int | None, environment: dict[str, str] | None = None) -> bool:
    """Initialise Ray; True when this call did it, and its caller must call `ray.shutdown`.

    `address` HOST:PORT or auto joins a cluster, None starts Ray here with `workers` processors (all of this process
    when None), whatever RAY_ADDRESS says; `environment` is added to that of its workers. Ray that is already
    initialised in this process is used as it is. Raises `InputError` when there is no cluster at the address.
    """
    if ray.is_initialized():
        return False
    for name in _OFF:
        os.environ.setdefault(f"RAY_{name}", "0")
    hush("ray", logging.ERROR)
    with _unobtrusive():
        if address is None:
            _begin(workers, environment)
        else:
            _join(address)
    return True


@contextmanager
def _unobtrusive() -> Iterator[None]:
    """Ray, initialised inside, takes over neither SIGTERM nor standard output, where its processes would complain."""
    module, before = ray._private.worker, signal.getsignal(signal.SIGTERM)
    listen, module.listen_error_messages = module.listen_error_messages, lambda *_: None
    try:
        yield
    finally:
        module.listen_error_messages = listen
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def _begin(workers: int | None, environment: dict[str, str] | None) -> None:
    try:
        ray.init(
            address="local",
            num_cpus=workers or processors(),
            include_dashboard=False,
            object_store_memory=_OBJECT_STORE,
            _node_ip_address="127.0.0.1",
            runtime_env={"env_vars": environment} if environment else None,
            **_QUIET,
        )
    except Exception as error:  # a bare one of Ray's, too, as where a busy machine is too slow for it
        raise FederationError(f"cannot start Ray on this machine: {_first_line(error)}") from error


def _join(address: str) -> None:
    found = None
    try:
        found = canonicalize_bootstrap_address(address)
        if found is None:
            raise ConnectionError("no running cluster was found")
        host, _, port = found.rpartition(":")
        socket.create_connection((host, int(port)), timeout=_REACHABLE).close()
        ray.init(address=found, **_QUIET)
    except (Exception, SystemExit) as error:  # bare ones of Ray's, too
        meant = "" if found in (None, address) else f", which is {found} to Ray"
        raise InputError(
            f"engine.ray.address: there is no Ray cluster to join at {address}{meant} ({_first_line(error)}); start "
            "one with 'RAY_USAGE_STATS_ENABLED=0 ray start --head', on this machine too, and name it HOST:PORT or auto"
        ) from error


class Head:
    """The processes of Ray that this one cannot do without: those that it has started, or the cluster's that it joined.

    Where they end, Ray ends this process at its next step, without a word; so they must be looked at before it. Where
    it is faster, another process says why.
    """

    def __init__(self) -> None:
        started = ray._private.worker._global_node.all_processes
        self._own = [one.process for name in _ESSENTIAL for one in started.get(name, [])]
        context = ray.get_runtime_context()
        [here] = [node for node in ray.nodes() if node["NodeID"] == context.get_node_id()]
        self._addresses = [context.gcs_address, f"{here['NodeManagerAddress']}:{here['NodeManagerPort']}"]
        self._looked = time.monotonic()
        self._last_words = None if self._own else LastWords(_ENDED, self._addresses)
        self.lost = False

    def require(self) -> None:
        """Raises `FederationError` where one of them has ended, at a cluster a twentieth of a second later at most."""
        if self._own:
            self.lost = any(process.poll() is not None for process in self._own)
        elif time.monotonic() > self._looked + _LOOK:
            self.lost = not all(map(answers, self._addresses))
            self._looked = time.monotonic()
        if self.lost:
            raise FederationError(_ENDED)

    def release(self) -> None:
        """Nothing of Ray is needed any more."""
        if self._last_words is not None:
            self._last_words.release()


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


NOTHING = logging.CRITICAL + 1


def hush(name: str, level: int = NOTHING) -> Callable[[], None]:
    """Handlers of the logger `name` that write to this process's output or errors show nothing below `level`.

    Others, which may be what somebody listens by, are left alone.

    Gives what makes them as they were.

    Examples:
        >>> import sys
        >>> logger, console = logging.getLogger("loud"), logging.StreamHandler(sys.stdout)
        >>> logger.addHandler(console)
        >>> restore = hush("loud")
        >>> logger.error("not shown")
        >>> restore()
        >>> logger.error("shown")
        shown
        >>> logger.removeHandler(console)
    """
    consoles = [each for each in logging.getLogger(name).handlers if _is_console(each)]
    before = [console.level for console in consoles]
    for console in consoles:
        console.setLevel(level)

    def restore() -> None:
        for console, each in zip(consoles, before, strict=True):
            console.setLevel(each)

    return restore


def _is_console(handler: logging.Handler) -> bool:
    # A progress bar stands in for the outputs while it is shown; handlers made before it keep the first ones.
    outputs = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
    return isinstance(handler, logging.StreamHandler) and handler.stream in outputs
