"""The SuperLink is reached, started and told what to do; what Flower answers is played here."""

import io
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
import zipfile
from types import SimpleNamespace

import httpx
import pytest
from support.letter_sites import deployed

from federation.contract.errors import FederationError, InputError
from scenarios.deployment import superlink as module
from scenarios.deployment.certificates import SERVER, SERVER_KEY, make_authority, make_server
from scenarios.deployment.superlink import SuperLink, superlink


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return deployed(tmp_path_factory.mktemp("sites"))[0]


class Client:
    """What Flower's Control API answers."""

    def __init__(self):
        self.nodes, self.started, self.status = [], [], "running"

    def ListNodes(self, request):
        return SimpleNamespace(nodes_info=self.nodes)

    def RegisterNode(self, request):
        known = SimpleNamespace(public_key=request.public_key, node_id=100 + len(self.nodes), status="registered")
        self.nodes.append(known)
        return known

    def StartRun(self, request):
        self.started.append(request)
        return SimpleNamespace(run_id=7)

    def ListRuns(self, request):
        run = SimpleNamespace(status=SimpleNamespace(status=self.status))
        return SimpleNamespace(run_dict={7: run} if request.run_id == 7 else {})

    def StopRun(self, request):
        raise httpx.HTTPError("it has ended already")


def test_sites_are_registered_once(folder):
    link = SuperLink(Client())
    first = link.register(folder.agreement)
    assert first == {"north": 100, "south": 101, "west": 102}
    assert link.register(folder.agreement) == first
    assert len(link.client.nodes) == 3
    link.client.nodes[1].status = "online"
    assert link.online() == {101}


def test_a_run_has_an_app_without_code_and_the_configuration(folder):
    link = SuperLink(Client())
    assert link.start({"dir": "/a/b", "exchange": "001", "patience": 600.0, "wait": 60.0}) == 7
    [request] = link.client.started
    config = {name: value.string or value.double for name, value in request.override_config.items()}
    assert config == {"dir": "/a/b", "exchange": "001", "patience": 600.0, "wait": 60.0}
    with zipfile.ZipFile(io.BytesIO(request.fab.content)) as app:
        assert 'serverapp = "aggregator.exchange.app:app"' in app.read("pyproject.toml").decode()
        assert [name for name in app.namelist() if name.endswith(".py") and app.read(name)] == []


def test_a_run_that_is_not_known_has_ended_and_one_that_has_ended_can_be_stopped(folder):
    link = SuperLink(Client())
    assert not link.finished(7)
    assert link.finished(8)
    link.client.status = "finished"
    assert link.finished(7)
    link.stop(7)


@pytest.fixture
def port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        yield found.getsockname()[1]


def test_where_nothing_listens_there_is_none(folder, port):
    assert module._reached(folder, f"127.0.0.1:{port}") is None


def test_what_shows_another_certificate_is_not_believed(folder, tmp_path):
    make_authority(tmp_path, "other")
    make_server(tmp_path, "other", [])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / SERVER, tmp_path / SERVER_KEY)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(20)

        def serve():
            for _ in range(20):
                try:
                    context.wrap_socket(listening.accept()[0], server_side=True)
                except ssl.SSLError:
                    continue
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(InputError, match=r"does not show the certificate of this deployment.*end it, or start it"):
            module._reached(folder, f"127.0.0.1:{listening.getsockname()[1]}")


def test_what_answers_with_something_else_is_refused(folder, monkeypatch):
    def fail(*_):
        raise httpx.RemoteProtocolError("no HTTP")

    monkeypatch.setattr(module.ControlHttpClient, "from_server_address", lambda *_: SimpleNamespace(ListNodes=fail))
    with pytest.raises(InputError, match="is no SuperLink that takes runs from here"):
        module._reached(folder, "127.0.0.1:1")


def test_one_that_runs_is_used_and_left_alone(folder, monkeypatch):
    running = SuperLink(Client())
    monkeypatch.setattr(module, "_reached", lambda folder, address: running if address.startswith("127.") else None)
    monkeypatch.setattr(module, "_started", None)
    with superlink(folder, folder.agreement) as found:
        assert found is running


def test_one_that_is_lost_on_the_way_is_told_in_a_sentence(folder, monkeypatch):
    monkeypatch.setattr(module, "_reached", lambda *_: SuperLink(Client()))
    told = pytest.raises(FederationError, match=r"at port 9 has ended or does not answer \(gone\); collect again")
    with told as raised, superlink(folder, folder.agreement):
        raise httpx.ConnectError("gone")
    assert raised.value.exit_code == 1


def test_one_is_started_with_all_that_it_needs_and_ended_with_what_it_has_started(folder, monkeypatch):
    begun = []

    def popen(command, **settings):
        begun.append((command, settings))
        return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)

    running = iter([None, None, None, SuperLink(Client())])
    monkeypatch.setattr(module, "_reached", lambda *_: next(running))
    monkeypatch.setattr(module, "_PAUSE", 0.01)
    monkeypatch.setattr(module, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": popen}))
    with superlink(folder, folder.agreement):
        [(command, settings)] = begun
        environment = settings["env"]
        text = " ".join(command)
        for part in (
            "-m scenarios.deployment.superlink",
            "--host 127.0.0.1",
            "--port 9 ",
            "--enable-supernode-auth",
        ):
            assert part in text
        assert "--disable-runtime-dependency-installation" in command
        assert command[command.index("--longest-letter") + 1] == str(folder.agreement.longest_reply)
        assert "--insecure" not in command
        assert environment["FLWR_HOME"].startswith(str(folder.path))
        told = (folder.path / "superlink" / "log").read_text()  # for who would have it run all the time
        assert f"FLWR_HOME={folder.path}/superlink/home {sys.executable} -m scenarios.deployment.superlink" in told


def test_one_of_which_nothing_can_be_written_down_is_ended(folder, monkeypatch):
    begun = []

    def started(*_):
        begun.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True))
        return begun[0]

    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_reached", lambda *_: None)
    monkeypatch.setattr(module, "_started", started)
    monkeypatch.setattr(module, "write_lasting", full)
    with pytest.raises(OSError, match="No space left"), superlink(folder, folder.agreement):
        raise AssertionError("it goes on")
    assert begun[0].wait(20) != 0


@pytest.fixture
def left_over(folder):
    """A process of `collect` that it could not end, for it was killed."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("kept", ["process", "by", None])
def test_one_that_was_left_over_is_used_and_ended_and_no_other_process_of_its_number(
    folder, monkeypatch, left_over, kept
):
    """Nor one whose starter goes on, which ends it itself."""
    monkeypatch.setattr(module, "_reached", lambda *_: SuperLink(Client()))
    monkeypatch.setattr(module, "_PAUSE", 0.01)
    started = folder.path / "superlink" / "process.json"
    started.parent.mkdir(exist_ok=True)
    known = {"process": [left_over.pid, module._status(left_over.pid)[1]], "by": [os.getpid(), "7"]}
    if kept == "process":
        known["process"][1] = "7"
    elif kept == "by":
        known["by"][1] = module._status(os.getpid())[1]
    started.write_text(json.dumps(known))
    with superlink(folder, folder.agreement):
        assert left_over.poll() is None
    assert (left_over.poll() is None) is (kept is not None)
    assert started.exists() is (kept == "by")
    started.unlink(missing_ok=True)


def test_one_that_does_not_start_is_told_with_where_to_look(folder, monkeypatch):
    monkeypatch.setattr(module, "_reached", lambda *_: None)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    began = time.monotonic()
    with (
        pytest.raises(
            InputError, match=r"could not be started at 127\.0\.0\.1:9; see the last lines of .*superlink/log"
        ),
        superlink(folder, folder.agreement),
    ):
        pass
    assert time.monotonic() - began < 30  # it has ended, and nobody waits for it


def test_a_certificate_that_sites_would_refuse_starts_nothing(folder, monkeypatch):
    monkeypatch.setattr(module, "_reached", lambda *_: None)
    monkeypatch.setattr(module, "_started", None)
    other = folder.agreement.model_copy(update={"superlink": "link.example.org:9"})
    with pytest.raises(InputError, match=r"is not for link.example.org"), superlink(folder, other):
        pass
