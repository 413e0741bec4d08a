"""Grids by their names, and a ServerApp over one: its run's settings, one thread, and errors that pass through."""

import pytest
from flwr.app import RecordDict
from support.worlds import SYNTHETIC
from threadpoolctl import threadpool_info, threadpool_limits

from federation.contract.errors import InputError, QuorumError
from federation.engines import inline as launch
from federation.engines.inline import InlineGrid, open_grid, run_server_app
from federation.engines.nodes import Placement


def seen(grid, context):
    """A ServerApp that notes what it is given."""
    grid.seen = (dict(context.run_config), {pool["num_threads"] for pool in threadpool_info()})


def failing(grid, context):
    raise QuorumError("nobody answered")


def test_the_inline_grid_serves_the_parties_of_this_project():
    heard = []
    grid = open_grid("inline", on_reply=lambda *counts: heard.append(counts))
    assert isinstance(grid, InlineGrid)
    assert list(grid.get_node_ids()) == []
    grid.assign(Placement(4, 2, SYNTHETIC, 1))
    message = grid.create_message(RecordDict(), "query.strange", 1, "")
    [reply] = grid.send_and_receive([message])
    assert "strange" in reply.error.reason  # by parties.app, which knows no such question
    assert heard == [(1, 1)]
    grid.close()


def test_an_app_runs_on_one_thread_with_the_settings_of_its_run(monkeypatch):
    monkeypatch.setattr(launch, "SERVER_APP", f"{__name__}:seen")
    grid, settings = open_grid("inline"), {"plan": "plan.json"}
    with threadpool_limits(2):
        run_server_app(grid, settings)
    found, threads = grid.seen
    assert found == settings
    assert threads == {1}


def test_what_an_app_raises_reaches_whoever_runs_it(monkeypatch):
    monkeypatch.setattr(launch, "SERVER_APP", f"{__name__}:failing")
    with pytest.raises(QuorumError, match="nobody answered"):
        run_server_app(open_grid("inline"), {})


def test_an_app_that_is_not_installed_is_a_clear_error(monkeypatch):
    monkeypatch.setattr(launch, "SERVER_APP", "aggregator.server.app:absent")
    with pytest.raises(InputError, match=r"cannot load 'aggregator\.node\.app:absent'"):
        run_server_app(open_grid("inline"), {})
