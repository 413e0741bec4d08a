"""A scenario inside a run of Flower, whose configuration names it: the artefacts of `federation run`."""

import contextlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
import tomllib
import zipfile
from pathlib import Path

import pytest
from flwr.app import Context, RecordDict
from support.flower_nodes import RUN, ScatteredGrid, partitions

import scenarios
from aggregator.server.app import app
from federation.contract.errors import BudgetExceededError, InputError

SMALL = ["data.auxiliary=60", "data.features=[{whiten: 4}, unit_norm]", "parties.count=20", "trials.splits=2"]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def flwr_run(flower_process):
    """Runs the aggregator's app over seven nodes, with the declared run configuration and some values of it."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]

    def run(**chosen):
        assert set(chosen) <= {key.replace("-", "_") for key in declared}
        config = {**declared, **{key.replace("_", "-"): value for key, value in chosen.items()}}
        app(ScatteredGrid(partitions(7)), Context(RUN, 0, {}, RecordDict(), config))
        assert list((flower_process / "federation").iterdir()) == []

    return run


@pytest.mark.slow
def test_a_run_of_flower_leaves_the_bytes_of_a_run_of_ours(flwr_run, tmp_path, capsys, request):
    flwr_run(out=str(tmp_path / "flower"), set="; ".join(SMALL))
    request.getfixturevalue("undrawn")  # the report of the first is looked for
    scenarios.run("quickstart", out=tmp_path / "ours", overrides=SMALL)
    for name in ("results.csv", "ledger.json"):
        assert (tmp_path / "flower" / name).read_bytes() == (tmp_path / "ours" / name).read_bytes()
    assert json.loads((tmp_path / "flower" / "run.json").read_text())["engine"] == "flower"
    assert (tmp_path / "flower" / "report.html").exists()
    told = capsys.readouterr().out
    assert "world 2 of 2 (split 1)" in told
    assert f"wrote {tmp_path / 'flower'}/" in told


def test_errors_are_those_of_the_command_line(flwr_run, tmp_path):
    with pytest.raises(InputError, match="quickstart"):
        flwr_run(scenario="quickstrat")
    with pytest.raises(BudgetExceededError):
        flwr_run(out=str(tmp_path / "run"), set="privacy.budget={epsilon: 0.1, delta: 0}")
    with pytest.raises(InputError, match="7"):
        flwr_run(out=str(tmp_path / "run"), set="engine.parties_per_node=1")
    assert not (tmp_path / "run").exists()


@pytest.mark.filterwarnings("ignore::DeprecationWarning:pathspec.*")
@pytest.mark.slow
def test_the_code_that_runs_is_the_installed_one():
    from flwr.cli.build import build_fab_from_disk

    with zipfile.ZipFile(io.BytesIO(build_fab_from_disk(ROOT))) as bundle:
        assert sorted(bundle.namelist()) == [".info/CONTENT", "LICENSE", "README.md", "pyproject.toml"]


def ended(process):
    """Ends a process that is no child of ours, and waits until it has."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGTERM)
        while Path(f"/proc/{process}").exists():
            time.sleep(0.1)


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [str(one.getsockname()[1]) for one in sockets]


@pytest.fixture
def flwr(tmp_path, alone_with_ray):
    """Runs the command `flwr` with a home and ports of its own; ends the SuperLink that it starts."""
    home = tmp_path / "home"
    runtime, control = free_ports(2)
    environment = {
        **os.environ,
        "RAY_ADDRESS": "local",  # a Ray of its own, and not the latest that runs on this machine
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "FLWR_HOME": str(home),
        "FLWR_LOCAL_SUPERLINK_HTTP_API_PORT": runtime,
        "FLWR_LOCAL_CONTROL_API_PORT": control,
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    }

    def run(*arguments):
        command = ["flwr", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)

    yield run
    for commandline in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it may have ended meanwhile
            if f"{home}/local-superlink".encode() in commandline.read_bytes():
                ended(int(commandline.parent.name))


@pytest.mark.slow
def test_flwr_run_leaves_the_bytes_of_a_run_of_ours(flwr, tmp_path):
    config = f'out="{tmp_path / "flower"}" set="{"; ".join(SMALL)}"'
    nodes = "num-supernodes=4 client-resources-num-cpus=1"
    done = flwr("run", str(ROOT), "--stream", "--federation-config", nodes, "--run-config", config)
    assert f"wrote {tmp_path / 'flower'}/" in done.stdout, done.stdout + done.stderr
    scenarios.run("quickstart", out=tmp_path / "ours", overrides=SMALL)
    assert (tmp_path / "flower" / "results.csv").read_bytes() == (tmp_path / "ours" / "results.csv").read_bytes()
    refused = flwr("run", str(ROOT), "--stream", "--run-config", 'scenario="quickstrat"')
    assert "did you mean 'quickstart'" in refused.stdout
