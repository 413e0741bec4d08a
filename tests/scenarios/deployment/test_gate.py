"""Other machines reach what is for sites, and nothing else."""

import asyncio
import inspect
import sys
from importlib import import_module

import pytest

from scenarios.deployment import gate
from scenarios.deployment.gate import gated


def answer(path, client, kind="http"):
    """The status that somebody gets at a path."""
    sent = []

    async def served(scope, receive, send):
        await send({"type": "http.response.start", "status": 200})

    async def send(message):
        sent.append(message)

    scope = {"type": kind, "path": path, "client": client and (client, 4711)}
    asyncio.run(gated(served)(scope, None, send))
    return sent[0]["status"] if sent else None


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


def test_starting_and_stopping_is_no_call_and_others_than_calls_get_nothing():
    assert answer("", None, kind="lifespan") == 200
    assert answer(CONTROL, "192.0.2.7", kind="websocket") is None


def test_flowers_own_program_serves_behind_the_gate(monkeypatch):
    import uvicorn

    served = {}
    monkeypatch.setattr(uvicorn, "run", lambda app, **settings: served.update(app=app, **settings))
    monkeypatch.setattr(import_module(FLOWERS), "flower_superlink", lambda: uvicorn.run("the app", port=1))
    monkeypatch.setattr(gate, "gated", lambda app: f"gate before {app}")
    monkeypatch.setattr(sys, "argv", ["gate"])
    gate.main()
    assert (served["app"], served["port"]) == ("gate before the app", 1)


def test_flowers_program_is_still_served_the_way_that_the_gate_takes():
    """`uvicorn.run` by that name, with the app by name or place, and the paths for sites below the one that is open."""
    from flwr.superlink.routers.control import router as control
    from flwr.superlink.routers.fleet.router import router as fleet

    source = inspect.getsource(import_module(FLOWERS))
    assert source.count("uvicorn.run(") == 1
    assert "from uvicorn" not in source
    assert f"{fleet.prefix}/" == gate.FOR_SITES
    assert not control.prefix.startswith(gate.FOR_SITES)
