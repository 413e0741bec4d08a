"""A SuperLink that is killed and a disk that is full in the middle of an exchange: nobody pays twice, same answers."""

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.trials import environment, following, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.servers]

SITES = ["north", "south", "west"]


@pytest.fixture
def trial(tmp_path):
    """The page, followed as far as the collection; an answer leaves 40 seconds after its question."""
    with following(tmp_path, until="federation collect", **{"seconds = 12/": "seconds = 20/"}) as found:
        yield found


def answers(trial):
    """What every site has stored to send."""
    return {path: path.read_bytes() for site in SITES for path in (trial.folder / site / "state/answers").iterdir()}


def begun(trial):
    """A collection, as far as all sites have an answer that has not left."""
    process = trial.collecting()
    wait_until(lambda: all("answered" in trial.events(site) for site in SITES))
    return process


def of_superlink(trial):
    """The SuperLink's process, and those that it has started."""
    leader = json.loads((trial.folder / "trial/superlink/process.json").read_text())["process"][0]
    return leader, [int(one.name) for one in Path("/proc").glob("[0-9]*") if _session(one) == leader]


def _session(process):
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[3])
    except OSError:  # it has ended
        return None


def goes_on(trial, stored):
    """Collecting again releases what the sites had answered, which pay for nothing more."""
    told = trial.do("federation collect trial")
    assert "wrote" in told
    assert answers(trial) == stored
    for site in SITES:
        assert [trial.events(site).count(one) for one in ("charged", "begun", "answered")] == [1, 1, 1]
    assert trial.world()["answered"] == 3
    assert not (trial.folder / "trial/superlink/process.json").exists()


def test_a_superlink_that_is_killed_is_started_again_and_the_answers_are_those_that_were_given(trial):
    process, stored = begun(trial), answers(trial)
    leader, others = of_superlink(trial)
    os.kill(leader, signal.SIGKILL)
    _, told = process.communicate(timeout=200)
    assert process.returncode == 1
    assert "has ended or does not answer" in told
    assert told.splitlines()[-1].endswith("collect again, which goes on where this was")
    assert "Traceback" not in told
    assert not [one for one in others if _session(Path("/proc", str(one))) == leader]  # nothing is left behind
    goes_on(trial, stored)


def _full():
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def test_a_coordinators_disk_that_is_full_is_one_sentence_and_the_exchange_goes_on_when_there_is_room(trial):
    """No process of it can make a file longer any more, from when the answers are on their way."""
    process, stored = begun(trial), answers(trial)
    for one in (process.pid, *of_superlink(trial)[1]):
        resource.prlimit(one, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    _, told = process.communicate(timeout=300)
    assert process.returncode == 2
    assert "Traceback" not in told
    [error] = [line for line in told.splitlines() if line.startswith("error: ")]
    assert "free some room on that disk, and collect again" in error
    words = [sys.executable, "-m", "scenarios.cli", "collect", "trial"]
    again = subprocess.run(words, cwd=trial.folder, env=environment(), capture_output=True, text=True, preexec_fn=_full)
    assert (again.returncode, again.stderr.replace("\n", "")) == (2, error)
    goes_on(trial, stored)
