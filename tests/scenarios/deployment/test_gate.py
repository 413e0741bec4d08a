"""Other machines reach what is for sites, and nothing else."""

import asyncio
import inspect
import os
import resource
import sys
from importlib import import_module

import pytest
from flwr.app import ConfigRecord, Metadata, RecordDict
from flwr.app.message.message import make_message, remove_content_from_message
from flwr.common.serde import message_to_proto
from flwr.proto.fleet_pb2 import PushMessagesRequest
from flwr.proto.node_pb2 import Node
from flwr.supercore.inflatable.inflatable_object import get_object_tree

from federation.signed_messages.messages import LETTER
from scenarios.deployment import superlink as gate
from scenarios.deployment.superlink import gated


def answer(path, client, kind="http", length=b"10", more=(), body=b"", **longest):
    """The status that somebody gets at a path, who says to send so many bytes, and sends some."""
    got = []

    async def served(scope, receive, send):
        got.append((await receive())["body"])
        await send({"type": "http.response.start", "status": 200})

    status = asyncio.run(called(gated(served, **longest), path, client, kind, length, more, pieces(body)))
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
FLEET, CONTROL = "/v1/fleet/pull-messages", "/v1/control/start-run"


@pytest.mark.parametrize("client", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("path", [FLEET, CONTROL, "/v1/runtime/push", "/docs"])
def test_this_machine_reaches_all(path, client):
    assert answer(path, client) == 200


@pytest.mark.parametrize("client", ["192.0.2.7", "10.0.0.1", "", None, "127.0.0.1.example.org"])
def test_other_machines_reach_what_is_for_sites(client):
    assert answer(FLEET, client) == 200
    for path in (CONTROL, "/v1/runtime/push", "/docs", "/", "/v1/fleet", "/V1/FLEET/x", "//v1/fleet/x", "/v1/fleets/x"):
        assert answer(path, client) == 403


@pytest.mark.parametrize("client", ["127.0.0.1", "192.0.2.7"])
@pytest.mark.parametrize(
    ("path", "length", "status"),
    [
        ("/v1/fleet/push-object", b"268435456", 200),
        ("/v1/fleet/push-object", b"300000000", 413),
        ("/v1/fleet/push-object", b"9" * 5000, 413),
        ("/v1/fleet/push-object", b"", 411),
        ("/v1/fleet/push-object", b"-1", 411),
        ("/v1/fleet/push-messages", b"1025", 413),
    ],
)
def test_no_site_sends_more_than_sites_have_to_send(client, path, length, status):
    """Else one of them could fill the memory of whoever learns from all."""
    assert answer(path, client, length=length) == status


def test_no_letter_is_much_longer_than_the_plan_has_them():
    for length, status in {b"75536": 200, b"75537": 413}.items():
        assert answer("/v1/fleet/push-object", "192.0.2.7", length=length, longest=10_000) == status


def test_what_is_sent_in_pieces_without_an_end_is_refused_whatever_length_it_says():
    assert answer(FLEET, "192.0.2.7", more=[(b"transfer-encoding", b"chunked")]) == 411


def test_a_letter_of_a_site_passes():
    """What names it is far below the bound, and is sent at the path that is bounded."""
    from flwr.supernode.fleet_http_client import FleetHttpClient

    assert answer(gate.NAMES, "192.0.2.7", body=names()) == 200
    assert len(names()) < 0.7 * gate.LARGEST_NAMES
    assert f'"{gate.NAMES}"' in inspect.getsource(FleetHttpClient.PushMessages)


@pytest.mark.parametrize(
    "body",
    [names(reply_to_message_id="", src_node_id=1), PushMessagesRequest().SerializeToString(), b"no names", b""],
)
def test_a_letter_that_replies_to_none_is_not_taken(body):
    """Flower stores it as one of the coordinator's, to whoever it is for, as many as there are."""
    for client in ("192.0.2.7", "127.0.0.1"):
        assert answer(gate.NAMES, client, body=body) == 403


def test_who_sends_nothing_of_what_was_announced_is_cut_off_and_costs_others_nothing(monkeypatch):
    monkeypatch.setattr(gate, "_COMING", 0.3)
    monkeypatch.setattr(gate, "_AT_ONCE", 4)
    found = {}

    async def served(scope, receive, send):
        await send({"type": "http.response.start", "status": 200})

    async def never():
        await asyncio.Event().wait()

    async def all_at_once():
        passed = gated(served)
        silent = [asyncio.create_task(called(passed, FLEET, "192.0.2.7", receive=never)) for _ in range(5)]
        await asyncio.sleep(0.05)
        found["other"] = await called(passed, FLEET, "192.0.2.8", receive=pieces(b"x"))
        found["silent"] = sorted(await asyncio.gather(*silent))
        found["later"] = await called(passed, FLEET, "192.0.2.7", receive=pieces(b"x"))

    asyncio.run(all_at_once())
    assert found == {"other": 200, "silent": [408] * 4 + [503], "later": 200}


def test_who_goes_before_all_has_come_is_not_handed_on():
    async def gone():
        return {"type": "http.disconnect"}

    assert asyncio.run(called(gated(None), FLEET, "192.0.2.7", receive=gone)) == 400


def test_starting_and_stopping_is_no_call_and_others_than_calls_get_nothing():
    assert answer("", None, kind="lifespan") == 200
    assert answer(CONTROL, "192.0.2.7", kind="websocket") is None


def test_flowers_own_program_serves_behind_the_gate(monkeypatch):
    import uvicorn

    served = {}
    monkeypatch.setattr(uvicorn, "run", lambda app, **settings: served.update(app=app, **settings))
    monkeypatch.setattr(import_module(FLOWERS), "flower_superlink", lambda: uvicorn.run("the app", port=1))
    monkeypatch.setattr(gate, "gated", lambda app, longest: f"gate of {longest} before {app}")
    monkeypatch.setattr(sys, "argv", ["gate", "--host", "h", "--longest-letter", "10000", "--port", "1"])
    monkeypatch.setenv("FLWR_TELEMETRY_ENABLED", "1")
    monkeypatch.setenv("FLWR_DISABLE_UPDATE_CHECK", "0")
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")  # so that anybody could say to be of this machine
    monkeypatch.setenv("FLWR_INTERNAL_GRPC_CONTROL_API", "1")  # another port, without the gate
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(1000, limits[1]), limits[1]))
    try:
        gate.main()
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
    assert f"{fleet.prefix}/" == gate.FOR_SITES
    assert not control.prefix.startswith(gate.FOR_SITES)
