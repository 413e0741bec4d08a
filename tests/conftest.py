"""Shared pieces: a small synthetic world that needs no files."""

# ruff: noqa: E402 - numerical libraries read the number of their threads when they are first imported
import fcntl
import gc
import os
import tempfile
from collections.abc import Generator
from pathlib import Path

from federation.contract.trust import TrustTerms

# Tests run on all processors already. Threads of theirs, of which each turns idly until it is given work, took most of
# the time of products of small matrices; processes that a test starts inherit this.
for _library in ("OPENBLAS", "OMP"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import settings
from support.examples import DEFAULT
from support.packages import install_broken
from support.synthetic import Parties, public_table

from aggregator.trial.plan import KnownNumbers, ReleasePlan, RunPlan, TaskPlan, TrialPlan, VariantPlan
from federation.contract.plugins import Reference

pytest_plugins = ["support.messages"]
collect_ignore = ["plugins/complete", "plugins/incomplete"]  # packages of others, which their tests install

LONG = ("deployment", "federation/engines", "scenarios/testing", "documentation", "plugins")  # rooms that take long
SLOW = (
    "benchmarks",
    "deployment",
    "documentation",
    "pages",
    "papers",
    "plugins",
)  # rooms of which every test has the marker

# How long an example takes depends on what else the machine does, and speed is for benchmarks.
settings.register_profile("suite", deadline=None, max_examples=DEFAULT)
settings.register_profile("thorough", deadline=None, max_examples=8 * DEFAULT)  # --hypothesis-profile=thorough
settings.load_profile("suite")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what lies in a slow room, if it does not need real data."""
    room = item.path.relative_to(Path(__file__).parent).parts[0] if Path(__file__).parent in item.path.parents else ""
    if room in SLOW and item.get_closest_marker("reproduction") is None:
        item.add_marker("slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes long or waits for others begins first, at different workers: at the end it would be waited for.

    A worker begins with its share of the list, in one piece, and gives away what stands last of it.
    """
    workers = getattr(config, "workerinput", {"workercount": 1})["workercount"]
    rooms = [f"{Path(__file__).parent / room}{os.sep}" for room in LONG]
    long: list[list[pytest.Item]] = [[] for _ in rooms]
    others = []
    for item in items:
        room = next((place for place, room in enumerate(rooms) if str(item.path).startswith(room)), None)
        (others if room is None else long[room]).append(item)
    share, dealt = -(-len(items) // workers), []
    for worker in range(workers):
        first = [item for room in long[worker::workers] for item in room]
        kept = max(share - len(first), 0)
        dealt += first + others[:kept]
        others = others[kept:]
    items[:] = dealt + others


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, None, None]:
    """Modules and tests stay: searching them for garbage finds none, and takes a third of the time of collecting."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


FIELDS = {"world": "name", "public": "table", "features": "stages", "private_rows": "rows"}  # as a plan's file has them


@pytest.fixture
def make_plan(tmp_path):
    """A plan over the synthetic parties; keyword arguments replace its fields, by their names in a file."""

    plan = TrialPlan(
        "test-world",
        KnownNumbers(1e-6, 3, TrustTerms(40)),
        TaskPlan(
            table=Reference("support.synthetic:public_table"),
            stages=({"whiten": 3}, "unit_norm"),
            classes=("a", "b", "c"),
            class_names="class names are public",
            classifier={"name": "logistic", "parameters": {"regularisation": 1e-3}},
        ),
        (VariantPlan("soft_vote", "soft_vote", {}),),
        ReleasePlan((1.0, 10.0)),
        RunPlan(str(tmp_path), simulation=True, noise_seed=1, parties_per_node=40),
    )

    def make(**changes):
        return plan.changed(**{FIELDS.get(name, name): value for name, value in changes.items()})

    return make


@pytest.fixture
def import_folder(tmp_path, monkeypatch):
    """A folder to import from, in this process and in those that it starts."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


@pytest.fixture
def broken_package(import_folder):
    """A folder to import from, in which a package that cannot be imported is installed."""
    install_broken(import_folder)
    return import_folder


@pytest.fixture
def undrawn(monkeypatch):
    """Runs leave out their figures and report, which take longer than all else: for tests that read neither."""
    from scenarios.runs import runner

    monkeypatch.setattr(runner, "_draw", lambda *arguments: None)


@pytest.fixture
def rng():
    """A seeded generator for test data."""
    return np.random.default_rng(20160619)


@pytest.fixture
def parties():
    """The synthetic provider, in this process."""
    return Parties()


@pytest.fixture
def public():
    """The synthetic public table."""
    return public_table()


@pytest.fixture
def flower_process(monkeypatch, tmp_path):
    """What Flower sets up in a process where an aggregator runs; returns Flower's home."""
    from flwr.supercore.task_identity import TaskIdentity
    from support.flower_nodes import RUN

    for name in ("_run_id", "_task_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, RUN)
    monkeypatch.setenv("FLWR_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def alone_with_ray() -> Generator[None, None, None]:
    """Let one process at a time run a test of a Ray cluster: a driver without an address joins the latest."""
    with (Path(tempfile.gettempdir()) / "federation-tests-ray.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
