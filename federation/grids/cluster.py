"""Joins this process to Ray: processes of its own on this machine, or a cluster that is already there."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ray
from ray._private.services import canonicalize_bootstrap_address

from federation.contract.errors import FederationError, InputError

_OBJECT_STORE = 1 << 30  # bytes; Ray's default takes a third of the machine
_REACHABLE = 5.0  # seconds for a cluster's port to answer; Ray itself tries for minutes and then ends the process
_QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": True}
_OFF = ("ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "ENABLE_UV_RUN_RUNTIME_ENV", "DEDUP_LOGS", "USAGE_STATS_ENABLED")  # of Ray's


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
    with _termination_kept():
        if address is None:
            _begin(workers, environment)
        else:
            _join(address)
    return True


@contextmanager
def _termination_kept() -> Iterator[None]:
    """Whatever this process does on SIGTERM it does afterwards, too; Ray would end it without a word."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
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
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise FederationError(f"cannot start Ray on this machine: {_first_line(error)}") from error


def _join(address: str) -> None:
    try:
        found = canonicalize_bootstrap_address(address)
        if found is None:
            raise ConnectionError("no running cluster was found")
        host, _, port = found.rpartition(":")
        socket.create_connection((host, int(port)), timeout=_REACHABLE).close()
        ray.init(address=found, **_QUIET)
    except (OSError, RuntimeError, ValueError, SystemExit) as error:
        raise InputError(
            f"engine.ray.address: there is no Ray cluster to join at {address} ({_first_line(error)}); start one with "
            "'ray start --head', on this machine too, and name it HOST:PORT or auto"
        ) from error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
