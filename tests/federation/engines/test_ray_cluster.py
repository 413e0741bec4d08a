"""An existing Ray cluster of two nodes: equal bytes, lost nodes and workers, clear refusals; it is left as it was.

Only terminals are hushed.
"""

import io
import logging
import socket
import sys

import pytest
import ray
from ray.cluster_utils import Cluster
from support.worlds import run

from federation.contract.errors import FederationError, InputError
from federation.contract.plugins import Reference
from federation.engines import ray as ray_grid
from federation.engines.inline import open_grid
from federation.engines.nodes import Placement
from federation.engines.ray_cluster import hush


@pytest.fixture
def cluster(alone_with_ray):
    """Two nodes of one processor each, on this machine, for one test: some end a node, or hold a processor."""
    quiet = {"num_cpus": 1, "object_store_memory": 100 << 20}
    watchful = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 200, "health_check_failure_threshold": 10}
    started = Cluster()
    started.add_node(include_dashboard=False, _system_config=watchful, **quiet)
    started.other = started.add_node(**quiet)
    yield started
    started.shutdown()


@pytest.fixture
def on_cluster(cluster):
    grid = open_grid("ray", address=cluster.address)
    yield grid
    grid.close()


def living_actors():
    return [actor for actor in ray._private.state.actors().values() if actor["State"] != "DEAD"]


@ray.remote(num_cpus=1)
class Holder:
    """Somebody else's work, which holds a processor."""

    def ready(self):
        return True


@pytest.mark.slow
def test_both_nodes_work_and_release_the_bytes_of_inline(make_plan, cluster, on_cluster, tmp_path):
    seen = tmp_path / "seen"
    seen.mkdir()
    witnessed = Reference("support.sabotage:Witnessed", {"folder": str(seen)})
    plan = make_plan(individual=10)
    expected = run(open_grid("inline"), plan, 7)
    while on_cluster._starting:
        on_cluster._advance()
    assert run(on_cluster, plan, 3, witnessed) == expected
    assert {path.read_text() for path in seen.iterdir()} == {node["NodeID"] for node in ray.nodes()}
    on_cluster.close()
    assert not ray.is_initialized()
    ray.init(address=cluster.address, log_to_driver=False)  # it still runs
    try:
        assert len(ray.nodes()) == 2
        assert living_actors() == []
    finally:
        ray.shutdown()


@pytest.mark.slow
def test_held_processors_are_a_clear_error(cluster, monkeypatch):
    monkeypatch.setattr(ray_grid, "_PATIENCE", 1.0)
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        holders = [Holder.remote() for _ in range(2)]
        ray.get([holder.ready.remote() for holder in holders])
        with pytest.raises(InputError, match=r"2.*0"):
            open_grid("ray")
        assert len(living_actors()) == 2  # theirs, and none of ours waits on
        assert ray.is_initialized()
    finally:
        ray.shutdown()


@pytest.mark.slow
def test_a_machine_that_is_too_busy_to_start_a_worker_is_blamed_for_it_and_nothing_is_left_behind(monkeypatch):
    monkeypatch.setattr(ray_grid, "_SLOW", 0.0)
    monkeypatch.setattr(ray_grid, "_WAIT", 0.01)
    with pytest.raises(InputError, match=r"machine within 0 seconds.*engine\.workers"):
        open_grid("ray", workers=1)
    assert not ray.is_initialized()


@pytest.mark.slow
def test_one_free_processor_is_enough(make_plan, cluster):
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        holder = Holder.remote()
        ray.get(holder.ready.remote())
        grid = open_grid("ray")
        plan = make_plan()
        assert run(grid, plan, 5) == run(open_grid("inline"), plan, 5)
        grid.close()
    finally:
        ray.shutdown()


@pytest.mark.slow
def test_code_that_is_not_on_the_cluster_is_a_clear_error(cluster):
    with pytest.raises(InputError, match=r"workers.*absent"):
        ray_grid.RayGrid("absent.app:app", 1, cluster.address)
    assert not ray.is_initialized()


@pytest.mark.slow
def test_a_dead_node_costs_its_parties_a_retry_elsewhere(make_plan, cluster, on_cluster, tmp_path):
    flag = tmp_path / "unplugged"
    plan = make_plan()
    expected = run(open_grid("inline"), plan, 4)
    while on_cluster._starting:
        on_cluster._advance()
    node = Reference("support.sabotage:Unplugged", {"node": cluster.other.node_id, "flag": str(flag)})
    assert run(on_cluster, plan, 4, node) == expected
    assert flag.exists()
    assert run(on_cluster, plan, 9) == run(open_grid("inline"), plan, 9)  # with the node that is left


@pytest.mark.slow
def test_the_end_of_a_cluster_is_noticed_within_a_second(on_cluster, monkeypatch):
    head = on_cluster._head
    assert head._own == []  # it was not started here
    monkeypatch.setattr("federation.engines.ray_cluster._LOOK", -1.0)
    head.require()
    assert len(head._addresses) == 2
    known = head._addresses
    for number in range(2):
        with monkeypatch.context() as patch, socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            closed = f"127.0.0.1:{free.getsockname()[1]}"
            patch.setattr(head, "_addresses", [*known[:number], closed, *known[number + 1 :]])
            with pytest.raises(FederationError):
                head.require()
            assert head.lost
            patch.setattr("federation.engines.ray_cluster._LOOK", 60.0)
            head.lost = False
            head.require()  # it was looked at just now
    head.require()
    assert not head.lost


@pytest.mark.parametrize("address", [None, "nowhere", "host:port", "127.0.0.1:99999"])
def test_a_malformed_address_or_one_at_which_there_is_nothing_is_refused_at_once(address):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = address or f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(InputError, match=rf"engine\.ray\.address.*{address}"):
        open_grid("ray", address=address)
    assert not ray.is_initialized()


@pytest.mark.parametrize("address", [None, "auto"])
def test_what_ray_raises_without_a_kind_is_one_sentence_too(address, monkeypatch):
    """As where a busy machine does not start it in time."""
    with socket.socket() as there:
        there.bind(("127.0.0.1", 0))
        there.listen()
        found = f"127.0.0.1:{there.getsockname()[1]}"
        monkeypatch.setattr("federation.engines.ray_cluster.canonicalize_bootstrap_address", lambda _: found)

        def late(**_):
            raise Exception("The current node timed out during startup.")

        monkeypatch.setattr(ray, "init", late)
        with pytest.raises(FederationError) as told:
            open_grid("ray", address=address)
    assert isinstance(told.value, InputError) == (address is not None)
    assert "\n" not in str(told.value)


@pytest.mark.slow
def test_a_cluster_that_ended_after_the_last_answer_is_noticed_by_the_next_world_and_the_end(cluster, monkeypatch):
    grid = open_grid("ray", workers=1, address=cluster.address)
    monkeypatch.setattr("federation.engines.ray_cluster._LOOK", -1.0)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        known = grid._head._addresses
        grid._head._addresses = [f"127.0.0.1:{free.getsockname()[1]}"]
        with pytest.raises(FederationError):
            grid.assign(Placement(4, 2, Reference("support.synthetic:Parties"), 1))
        grid._head._addresses = known
    killed = []
    monkeypatch.setattr(ray, "kill", killed.append)
    grid._head.lost = False
    grid._head.require()
    grid._head._addresses = ["127.0.0.1:1"]
    grid.close()
    assert killed == []  # which would wait for the head
    assert not ray.is_initialized()


@pytest.mark.parametrize(
    ("level", "shown"), [((logging.ERROR,), ["shown", "severe", "again"]), ((), ["again"])], ids=["errors", "nothing"]
)
def test_files_hear_what_terminals_do_not(tmp_path, monkeypatch, level, shown):
    logger, terminal, listener = logging.getLogger("loud"), io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "__stderr__", terminal)  # pytest puts `stderr` back
    logger.propagate = False
    handlers = [logging.StreamHandler(terminal), logging.FileHandler(tmp_path / "log"), logging.StreamHandler(listener)]
    for handler in handlers:
        handler.setLevel(logging.WARNING)
        logger.addHandler(handler)
    restore = hush("loud", *level)
    logger.warning("hidden")
    logger.error("shown")
    logger.critical("severe")
    restore()
    logger.warning("again")
    logger.info("never")
    for handler in handlers:
        logger.removeHandler(handler)
        handler.close()
    heard = terminal.getvalue().split(), (tmp_path / "log").read_text().split(), listener.getvalue().split()
    assert heard == (shown, *[["hidden", "shown", "severe", "again"]] * 2)
