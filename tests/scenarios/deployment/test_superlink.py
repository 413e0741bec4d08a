"""The SuperLink is reached, started and told what to do, and other machines reach only what is for sites.

What Flower answers is played here.
"""

import asyncio
import inspect
import io
import json
import os
import resource
import socket
import subprocess
import sys
import time
import zipfile
from importlib import import_module
from types import SimpleNamespace

import httpx
import pytest
from flwr.app import ConfigRecord, Metadata, RecordDict
from flwr.app.message.message import make_message, remove_content_from_message
from flwr.common.serde import message_to_proto
from flwr.proto.fleet_pb2 import PushMessagesRequest
from flwr.proto.node_pb2 import Node
from flwr.supercore.inflatable.inflatable_object import get_object_tree
from support.letter_sites import deployed
from support.refusals import refused
from support.shown_certificates import showing

from federation.contract.errors import FederationError, InputError
from federation.signed_messages.messages import LETTER
from scenarios.deployment import superlink as module
from scenarios.deployment.certificates import make_authority, make_server


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return deployed(tmp_path_factory.mktemp("sites"))[0]


def sleeping():
    """A process that goes on until it is ended."""
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)


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


def test_sites_are_registered_once_and_runs_without_code_are_known_until_they_have_ended(folder):
    link = module.SuperLink(Client())
    first = link.register(folder.agreement)
    assert first == {"north": 100, "south": 101, "west": 102}
    assert link.register(folder.agreement) == first
    assert len(link.client.nodes) == 3
    link.client.nodes[1].status = "online"
    assert link.online() == {101}
    assert not link.finished(7)
    assert link.finished(8)  # which is not known
    link.client.status = "finished"
    assert link.finished(7)
    link.stop(7)
    link = module.SuperLink(Client())
    assert link.start({"dir": "/a/b", "exchange": "001", "patience": 600.0, "wait": 60.0}) == 7
    [request] = link.client.started
    config = {name: value.string or value.double for name, value in request.override_config.items()}
    assert config == {"dir": "/a/b", "exchange": "001", "patience": 600.0, "wait": 60.0}
    with zipfile.ZipFile(io.BytesIO(request.fab.content)) as app:
        assert "aggregator.exchange.app:app" in app.read("pyproject.toml").decode()
        assert [name for name in app.namelist() if name.endswith(".py") and app.read(name)] == []


def test_what_shows_another_certificate_is_not_believed(folder, tmp_path):
    make_authority(tmp_path, "other")
    make_server(tmp_path, "other", [])
    with showing(tmp_path) as address:
        refused(r"server\.crt", module._reached, folder, address)


def test_where_nothing_listens_there_is_none_and_what_answers_with_something_else_is_refused(folder, monkeypatch):
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        assert module._reached(folder, f"127.0.0.1:{found.getsockname()[1]}") is None

    def fail(*_):
        raise httpx.RemoteProtocolError("no HTTP")

    monkeypatch.setattr(module.ControlHttpClient, "from_server_address", lambda *_: SimpleNamespace(ListNodes=fail))
    refused("SuperLink", module._reached, folder, "127.0.0.1:1")


def test_one_that_runs_is_used_and_left_alone_and_its_loss_is_told_in_a_sentence(folder, monkeypatch):
    running = module.SuperLink(Client())
    monkeypatch.setattr(module, "_reached", lambda folder, address: running if address.startswith("127.") else None)
    monkeypatch.setattr(module, "_started", None)
    with module.superlink(folder, folder.agreement) as found:
        assert found is running
    with pytest.raises(FederationError, match="9") as raised, module.superlink(folder, folder.agreement):
        raise httpx.ConnectError("gone")
    assert raised.value.exit_code == 1


def test_one_is_started_with_all_that_it_needs_and_ended_with_what_it_has_started(folder, monkeypatch):
    begun = []

    def popen(command, **settings):
        begun.append((command, settings))
        return sleeping()

    running = iter([None, None, None, module.SuperLink(Client())])
    monkeypatch.setattr(module, "_reached", lambda *_: next(running))
    monkeypatch.setattr(module, "_PAUSE", 0.01)
    monkeypatch.setattr(module, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": popen}))
    with module.superlink(folder, folder.agreement):
        [(command, settings)] = begun
        text = " ".join(command)
        started = "-m scenarios.deployment.superlink"
        for part in (started, "--host 127.0.0.1", "--port 9 ", "--enable-supernode-auth"):
            assert part in text
        assert "--disable-runtime-dependency-installation" in command
        assert command[command.index("--longest-letter") + 1] == str(folder.agreement.longest_reply)
        assert "--insecure" not in command
        assert settings["env"]["FLWR_HOME"].startswith(str(folder.path))
        told = (folder.path / "superlink" / "log").read_text()  # for who would have it run all the time
        assert f"FLWR_HOME={folder.path}/superlink/home {sys.executable} {started}" in told


def test_one_of_which_nothing_can_be_written_down_is_ended(folder, monkeypatch):
    begun = []

    def started(*_):
        begun.append(sleeping())
        return begun[0]

    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_reached", lambda *_: None)
    monkeypatch.setattr(module, "_started", started)
    monkeypatch.setattr(module, "write_lasting", full)
    with pytest.raises(OSError, match="No space left"), module.superlink(folder, folder.agreement):
        raise AssertionError("it goes on")
    assert begun[0].wait(20) != 0


@pytest.fixture
def left_over(folder):
    """A process of `collect` that it could not end, for it was killed."""
    process = sleeping()
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("kept", ["process", "by", None])
def test_one_that_was_left_over_is_used_and_ended_and_no_other_process_of_its_number(
    folder, monkeypatch, left_over, kept
):
    """Nor one whose starter goes on, which ends it itself."""
    monkeypatch.setattr(module, "_reached", lambda *_: module.SuperLink(Client()))
    monkeypatch.setattr(module, "_PAUSE", 0.01)
    started = folder.path / "superlink" / "process.json"
    started.parent.mkdir(exist_ok=True)
    known = {"process": [left_over.pid, module._status(left_over.pid)[1]], "by": [os.getpid(), "7"]}
    if kept == "process":
        known["process"][1] = "7"
    elif kept == "by":
        known["by"][1] = module._status(os.getpid())[1]
    started.write_text(json.dumps(known))
    with module.superlink(folder, folder.agreement):
        assert left_over.poll() is None
    assert (left_over.poll() is None) is (kept is not None)
    assert started.exists() is (kept == "by")
    started.unlink(missing_ok=True)


def test_one_that_does_not_start_is_told_with_where_to_look_and_so_is_a_bad_certificate(folder, monkeypatch):
    monkeypatch.setattr(module, "_reached", lambda *_: None)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    began = time.monotonic()
    with pytest.raises(InputError, match=r"127\.0\.0\.1:9.*superlink/log"), module.superlink(folder, folder.agreement):
        pass
    assert time.monotonic() - began < 30  # it has ended, and nobody waits for it
    monkeypatch.setattr(module, "_reached", lambda *_: None)
    monkeypatch.setattr(module, "_started", None)
    other = folder.agreement.model_copy(update={"superlink": "link.example.org:9"})
    with pytest.raises(InputError, match=r"link\.example\.org"), module.superlink(folder, other):
        pass


def answer(path, client, kind="http", length=b"10", more=(), body=b"", **longest):
    """The status that somebody gets at a path, who says to send so many bytes, and sends some."""
    got = []

    async def served(scope, receive, send):
        got.append((await receive())["body"])
        await send({"type": "http.response.start", "status": 200})

    status = asyncio.run(called(module.gated(served, **longest), path, client, kind, length, more, pieces(body)))
    assert got in ([], [body])  # handed on as it came, in one piece
    return status


async def called(gate, path, client, kind="http", length=b"10", more=(), receive=None):
    sent = []

    async def send(message):
        sent.append(message)

    headers = [(b"content-type", b"x"), *([(b"content-length", length)] if length else []), *more]
    scope = {"type": kind, "path": path, "client": client and (client, 4711), "headers": headers}
    await gate(scope, receive, send)
    return sent[0]["status"] if sent else None


def pieces(body):
    """A byte at a time, and then the end."""
    parts = [{"type": "http.request", "body": bytes([each]), "more_body": True} for each in body]
    parts += [{"type": "http.request", "body": b""}]

    async def receive():
        return parts.pop(0)

    return receive


def names(**changed):
    """What a site says that it will send, of a letter in reply."""
    content = RecordDict({LETTER: ConfigRecord({name: bytes(1000) for name in ("ephemeral", "sealed", "signature")})})
    known = {"src_node_id": 2**63, "dst_node_id": 2**63, "reply_to_message_id": "0" * 64} | changed
    metadata = Metadata(
        2**63, "", group_id="", created_at=1e9, ttl=3600.0, message_type="query.noisy_embeddings", **known
    )
    message = make_message(metadata=metadata, content=content)
    message.metadata.__dict__["_message_id"] = message.object_id
    request = PushMessagesRequest(
        node=Node(node_id=2**63),
        messages_list=[message_to_proto(remove_content_from_message(message))],
        message_object_trees=[get_object_tree(message)],
        clientapp_runtime_list=[0.0],
    )
    return request.SerializeToString()


FLOWERS = "flwr.superlink.cli.flower_superlink"
FLEET, CONTROL, OBJECT = "/v1/fleet/pull-messages", "/v1/control/start-run", "/v1/fleet/push-object"


def test_this_machine_reaches_all_and_others_what_is_for_sites():
    for client in ("127.0.0.1", "::1"):
        for path in (FLEET, CONTROL, "/v1/runtime/push", "/docs"):
            assert answer(path, client) == 200
    others = (CONTROL, "/v1/runtime/push", "/docs", "/", "/v1/fleet", "/V1/FLEET/x", "//v1/fleet/x", "/v1/fleets/x")
    for client in ("192.0.2.7", "10.0.0.1", "", None, "127.0.0.1.example.org"):
        assert answer(FLEET, client) == 200
        assert {path: answer(path, client) for path in others} == dict.fromkeys(others, 403)


@pytest.mark.parametrize("client", ["127.0.0.1", "192.0.2.7"])
@pytest.mark.parametrize(
    ("path", "sent", "status"),
    [
        (OBJECT, {"length": b"268435456"}, 200),
        (OBJECT, {"length": b"300000000"}, 413),
        (OBJECT, {"length": b"9" * 5000}, 413),
        (OBJECT, {"length": b""}, 411),
        (OBJECT, {"length": b"-1"}, 411),
        (OBJECT, {"length": b"75536", "longest": 10_000}, 200),  # little more than the letters of the plan
        (OBJECT, {"length": b"75537", "longest": 10_000}, 413),
        (FLEET, {"more": [(b"transfer-encoding", b"chunked")]}, 411),  # pieces without an end, whatever length it says
        ("/v1/fleet/push-messages", {"length": b"1025"}, 413),
    ],
)
def test_no_site_sends_more_than_sites_have_to_send(client, path, sent, status):
    """Else one of them could fill the memory of whoever learns from all."""
    assert answer(path, client, **sent) == status


def test_a_letter_of_a_site_passes():
    """What names it is far below the bound, and is sent at the path that is bounded."""
    from flwr.supernode.fleet_http_client import FleetHttpClient

    assert answer(module.NAMES, "192.0.2.7", body=names()) == 200
    assert len(names()) < 0.7 * module.LARGEST_NAMES
    assert f'"{module.NAMES}"' in inspect.getsource(FleetHttpClient.PushMessages)


@pytest.mark.parametrize(
    "body",
    [names(reply_to_message_id="", src_node_id=1), PushMessagesRequest().SerializeToString(), b"no names", b""],
)
def test_a_letter_that_replies_to_none_is_not_taken(body):
    """Flower stores it as one of the coordinator's, to whoever it is for, as many as there are."""
    for client in ("192.0.2.7", "127.0.0.1"):
        assert answer(module.NAMES, client, body=body) == 403


def test_who_sends_nothing_of_what_was_announced_is_cut_off_and_costs_others_nothing(monkeypatch):
    monkeypatch.setattr(module, "_COMING", 0.3)
    monkeypatch.setattr(module, "_AT_ONCE", 4)
    found = {}

    async def served(scope, receive, send):
        await send({"type": "http.response.start", "status": 200})

    async def never():
        await asyncio.Event().wait()

    async def all_at_once():
        passed = module.gated(served)
        silent = [asyncio.create_task(called(passed, FLEET, "192.0.2.7", receive=never)) for _ in range(5)]
        await asyncio.sleep(0.05)
        found["other"] = await called(passed, FLEET, "192.0.2.8", receive=pieces(b"x"))
        found["silent"] = sorted(await asyncio.gather(*silent))
        found["later"] = await called(passed, FLEET, "192.0.2.7", receive=pieces(b"x"))

    asyncio.run(all_at_once())
    assert found == {"other": 200, "silent": [408] * 4 + [503], "later": 200}


def test_who_goes_before_all_has_come_is_not_handed_on_and_others_than_calls_get_nothing():
    async def gone():
        return {"type": "http.disconnect"}

    assert asyncio.run(called(module.gated(None), FLEET, "192.0.2.7", receive=gone)) == 400
    assert answer("", None, kind="lifespan") == 200  # starting and stopping is no call
    assert answer(CONTROL, "192.0.2.7", kind="websocket") is None


def test_flowers_own_program_serves_behind_the_gate(monkeypatch):
    import uvicorn

    served = {}
    monkeypatch.setattr(uvicorn, "run", lambda app, **settings: served.update(app=app, **settings))
    monkeypatch.setattr(import_module(FLOWERS), "flower_superlink", lambda: uvicorn.run("the app", port=1))
    monkeypatch.setattr(module, "gated", lambda app, longest: f"gate of {longest} before {app}")
    monkeypatch.setattr(sys, "argv", ["gate", "--host", "h", "--longest-letter", "10000", "--port", "1"])
    monkeypatch.setenv("FLWR_TELEMETRY_ENABLED", "1")
    monkeypatch.setenv("FLWR_DISABLE_UPDATE_CHECK", "0")
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")  # so that anybody could say to be of this machine
    monkeypatch.setenv("FLWR_INTERNAL_GRPC_CONTROL_API", "1")  # another port, without the gate
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1000, limits[1]), limits[1]))
    try:
        module.main()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (limits[1], limits[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert [os.environ[name] for name in ("FLWR_TELEMETRY_ENABLED", "FLWR_DISABLE_UPDATE_CHECK")] == ["0", "1"]
    assert not {"FORWARDED_ALLOW_IPS", "FLWR_INTERNAL_GRPC_CONTROL_API"} & {*os.environ}
    assert (served["app"], served["port"]) == ("gate of 10000 before the app", 1)
    assert sys.argv == ["flower-superlink", "--host", "h", "--port", "1"]


def test_flowers_program_is_still_served_the_way_that_the_gate_takes():
    """`uvicorn.run` by that name, with the app by name or place, and the paths for sites below the one that is open."""
    from flwr.superlink.routers.control import router as control
    from flwr.superlink.routers.fleet.router import router as fleet

    source = inspect.getsource(import_module(FLOWERS))
    assert source.count("uvicorn.run(") == 1
    assert "from uvicorn" not in source
    assert f"{fleet.prefix}/" == module.FOR_SITES
    assert not control.prefix.startswith(module.FOR_SITES)
