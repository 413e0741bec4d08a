"""A site that is killed before its answer leaves, a collection that is interrupted, a site that never comes."""

import signal
import socket

import pytest
from support.trials import PORT, following, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.servers]


@pytest.fixture
def trial(tmp_path):
    """The page, followed until sites are to serve; an answer leaves 40 seconds after its question."""
    with following(tmp_path, until="federation party run", **{"seconds = 12/": "seconds = 20/"}) as found:
        yield found


def test_nobody_pays_twice_whatever_is_killed(trial):
    for site in ("north", "south"):  # the west never comes
        trial.serve(site)
    first = trial.collecting("--patience", "10m")
    wait_until(lambda: "answered" in trial.events("north") and "answered" in trial.events("south"))
    trial.stop("north", signal.SIGKILL)  # its answer is stored, and has not left
    first.kill()  # and leaves its SuperLink behind, with a run that goes on
    first.communicate(timeout=60)
    assert (trial.folder / "trial/superlink/process.json").exists()
    stored = {path.name: path.read_bytes() for path in (trial.folder / "north/state/answers").iterdir()}
    trial.serve("north")
    second = trial.collecting("--patience", "80s")  # a connection that was killed holds its place for a minute
    _, told = second.communicate(timeout=400)
    assert second.returncode == 0, told
    assert {path.name: path.read_bytes() for path in (trial.folder / "north/state/answers").iterdir()} == stored
    for site in ("north", "south"):
        assert trial.events(site).count("charged") == 1
        assert trial.events(site).count("answered") == 1
    assert "answered again" in trial.events("north")
    assert trial.world()["answered"] == 2
    assert "west" in told
    assert not (trial.folder / "trial/superlink/process.json").exists()
    with socket.create_server(("127.0.0.1", int(trial.changes[PORT]))):
        pass  # nobody is there any more
