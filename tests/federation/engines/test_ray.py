"""The Ray grid: the bytes of inline, equal records shared once, contained failures, no process left behind.

Messages to a node that keeps dying: its cohort halves until the culprit alone is lost, and nobody with it.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import ray
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, RecordDict
from flwr.common.constant import ErrorCode
from ray._private.state import actors
from support.worlds import SYNTHETIC, run

from aggregator.trial.plan import VariantPlan
from federation.contract.errors import QuorumError
from federation.contract.plugins import Reference
from federation.contract.query import Field, Submission
from federation.engines.codec import decode_submission, encode_submission
from federation.engines.inline import InlineGrid, open_grid
from federation.engines.nodes import Placement
from federation.engines.ray import DIED, Recovery, _Bundle, _Shared, _Work

VARIANTS = (
    VariantPlan("soft_vote", "soft_vote", {}),
    VariantPlan("soft_vote-gaussian", "soft_vote", {"noise": "gaussian"}),
    VariantPlan("published", "soft_vote", {"perturb": "output", "sensitivity": "published"}),
    VariantPlan("majority_vote", "majority_vote", {}),
)


@pytest.fixture(scope="module")
def terminations():
    """The signals SIGTERM that this process has received, from before there is a grid."""
    received = []
    before = signal.signal(signal.SIGTERM, lambda *signals: received.append(signals))
    yield received
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="module")
def ray_grid(terminations):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ADDRESS", "127.0.0.1:1")  # another run's cluster must not be taken for ours
        grid = open_grid("ray", workers=2)
        yield grid
        grid.close()


@pytest.fixture
def put(monkeypatch):
    stored = []
    monkeypatch.setattr(ray, "put", lambda content: stored.append(content) or len(stored))
    return stored


def records(value=1.0, text="a"):
    arrays = ArrayRecord({"rows": Array(np.full((3, 2), value))})
    return RecordDict({"settings": ConfigRecord({"json": text}), "arrays": arrays})


def test_equal_records_are_put_once_and_what_the_last_world_did_not_ask_is_forgotten(put):
    shared = _Shared()
    first = records()
    assert shared.reference(first) == shared.reference(first) == shared.reference(records())
    shared.forget_unused()
    assert shared.reference(records()) == 1
    assert len(put) == 1
    shared.forget_unused()
    shared.reference(records(value=2.0))
    shared.forget_unused()
    shared.reference(records())
    assert len(put) == 3


@pytest.mark.parametrize("other", [records(value=2.0), records(text="b"), RecordDict({"settings": ConfigRecord({})})])
def test_different_records_are_kept_apart(put, other):
    shared = _Shared()
    assert shared.reference(records()) != shared.reference(other)


@pytest.mark.slow
def test_termination_is_left_to_whoever_opened_the_grid(ray_grid, terminations):
    os.kill(os.getpid(), signal.SIGTERM)
    assert [number for number, _ in terminations] == [signal.SIGTERM]


@pytest.mark.slow
def test_what_no_handler_catches_costs_one_party_only(make_plan, ray_grid):
    _, summary = run(ray_grid, make_plan(parties=12), 4, Reference("support.sabotage:Unstoppable"))
    assert summary["answered"] == 11
    assert sum(summary["failures"].values()) == 1


@pytest.mark.parametrize("classifier", ["GaussianNB", pytest.param("DecisionTreeClassifier", marks=pytest.mark.slow)])
def test_ray_and_inline_release_equal_bytes(make_plan, ray_grid, classifier):
    plan = make_plan(variants=VARIANTS, individual=10, classifier={"name": classifier, "parameters": {}})
    assert run(open_grid("inline"), plan, 40) == run(ray_grid, plan, 3)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="tells the environment of processes by /proc")
def test_no_process_of_ray_reports_to_its_authors(ray_grid):
    ours = {"RAY_USAGE_STATS_ENABLED=0", "FLWR_TELEMETRY_ENABLED=0"}
    started = [one.process.pid for many in ray._private.worker._global_node.all_processes.values() for one in many]
    started += [worker["Pid"] for worker in actors().values() if worker["State"] == "ALIVE"]
    assert len(started) > 3
    for process in started:
        assert ours <= set(Path(f"/proc/{process}/environ").read_bytes().decode().split("\0"))


@pytest.mark.slow
def test_ray_and_inline_agree_on_logistic_regression(make_plan, ray_grid):
    plan = make_plan(variants=VARIANTS)
    assert run(open_grid("inline"), plan, 5) == run(ray_grid, plan, 11)


@pytest.mark.slow
@pytest.mark.parametrize("per_node", [1, 4])
def test_a_dying_worker_costs_its_parties_one_retry(make_plan, ray_grid, tmp_path, per_node):
    plan = make_plan()
    expected = run(open_grid("inline"), plan, 4)
    dying = Reference("support.synthetic:Parties", {"deadly": [9], "flag": str(tmp_path / "died")})
    assert run(ray_grid, plan, per_node, dying) == expected


@pytest.mark.slow
def test_a_worker_killed_at_work_costs_its_parties_one_retry(make_plan, ray_grid, tmp_path):
    flag = tmp_path / "pid"

    def kill():
        while not flag.exists():
            time.sleep(0.01)
        os.kill(int(flag.read_text()), signal.SIGKILL)

    plan = make_plan()
    expected = run(open_grid("inline"), plan, 4)
    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    assert run(ray_grid, plan, 4, Reference("support.sabotage:Killed", {"party": 9, "flag": str(flag)})) == expected
    killer.join()
    assert run(ray_grid, plan, 5) == expected  # later worlds are whole


@pytest.mark.slow
def test_what_is_late_when_nothing_else_is_left_is_given_to_an_idle_worker(make_plan, ray_grid, tmp_path, monkeypatch):
    """The first worker that serves party 9 would take ten minutes; it is replaced when the next world begins."""
    monkeypatch.setattr("federation.engines.ray._WAIT", 0.1)
    flag, plan = tmp_path / "stuck", make_plan(timeout=60.0)
    expected = run(open_grid("inline"), plan, 4)
    assert run(ray_grid, plan, 4, Reference("support.sabotage:Killed", {"party": 9, "flag": str(flag)})) == expected
    assert flag.exists()
    assert run(ray_grid, plan, 5) == expected


@pytest.mark.slow
def test_everyone_has_something_to_do_before_anyone_has_something_waiting(ray_grid, monkeypatch):
    sent = []

    def submit(worker, bundle):
        sent.append(worker)
        ray_grid._load[worker] += 1

    while len(ray_grid._load) < 2:
        ray_grid._advance()  # until both have started
    monkeypatch.setattr(ray_grid, "_submit", submit)
    for nodes, served in ((1, [0]), (2, [0, 1]), (3, [0, 1, 0]), (4, [0, 1, 0, 1]), (5, [0, 1, 0, 1])):
        ray_grid.assign(Placement(100 * nodes, 100, Reference("support.synthetic:Parties"), 1))
        ray_grid.push_messages(
            [ray_grid.create_message(RecordDict(), "query.a", node, "") for node in ray_grid.get_node_ids()]
        )
        sent.clear()
        ray_grid._fill()
        workers = list(ray_grid._load)
        assert [workers.index(worker) for worker in sent] == served
        ray_grid._load = dict.fromkeys(workers, 0)


def test_a_copy_is_sent_once_and_never_of_what_has_killed_a_worker():
    for suspect, copies, done in ((False, 0, False), (True, 1, False), (False, 2, False), (False, 1, True)):
        bundle = _Bundle([_Work(None, Recovery([]), suspect=suspect)])
        bundle.copies, bundle.done = copies, done
        assert not bundle.is_single
    usual = _Bundle([_Work(None, Recovery([]))])
    usual.copies = 1
    assert usual.is_single


@pytest.mark.slow
@pytest.mark.parametrize("per_node", [1, 10])
def test_a_party_that_always_kills_its_worker_is_lost_alone(make_plan, ray_grid, per_node):
    plan = make_plan()
    _, summary = run(ray_grid, plan, per_node, Reference("support.synthetic:Parties", {"deadly": [9]}))
    assert summary["failures"] == {"the worker process died while serving this party": 1}
    assert summary["answered"] == 39
    assert run(ray_grid, plan, 4) == run(open_grid("inline"), plan, 4)  # later worlds are whole


@pytest.mark.slow
def test_workers_load_their_rows_before_they_are_asked(ray_grid, tmp_path):
    ray_grid.assign(Placement(40, 20, Reference("support.sabotage:Announced", {"flag": str(tmp_path / "loaded")}), 1))
    deadline = time.monotonic() + 30
    while not (tmp_path / "loaded").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
def test_workers_that_keep_dying_end_the_run(make_plan, ray_grid, monkeypatch):
    monkeypatch.setattr("federation.engines.ray._MOST_DEATHS", 1)
    with pytest.raises(QuorumError, match="2"):
        run(ray_grid, make_plan(), 20, Reference("support.synthetic:Parties", {"deadly": [9]}))


@pytest.mark.slow
def test_a_broken_party_costs_only_itself(make_plan, ray_grid):
    broken = Reference("support.synthetic:Parties", {"broken": [3, 17]})
    _, summary = run(ray_grid, make_plan(), 8, broken)
    assert sum(summary["failures"].values()) == 2
    assert all("impute" in cause for cause in summary["failures"])


LOST = """
import os, signal
from federation.contract.errors import FederationError
from federation.contract.plugins import Reference
from federation.engines.inline import open_grid
from federation.engines.nodes import Placement
from flwr.app import ArrayRecord, Array, RecordDict
import numpy as np

grid = open_grid("ray", workers=1)
grid.assign(Placement(4, 2, Reference("support.synthetic:Parties"), 1))
large = RecordDict({"arrays": ArrayRecord({"rows": Array(np.zeros(10**6))})})  # only such need the object store
grid.push_messages([grid.create_message(large, "query.votes", node, "") for node in grid.get_node_ids()])
raylet = grid._head._own[-1]
os.kill(raylet.pid, signal.SIGKILL)
raylet.wait()
try:
    grid.pull_messages({"1", "2"})
except FederationError as error:
    print(error, flush=True)
grid.close()
print("closed", flush=True)
"""


@pytest.mark.slow
def test_the_end_of_ray_is_told_before_it_ends_this_process_without_a_word():
    """In a process of its own: where nobody looked Ray would end it."""
    done = subprocess.run([sys.executable, "-c", LOST], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    told, closed = done.stdout.splitlines()
    assert told.startswith("Ray has ended in the midst of this run: look for lack of memory")
    assert closed == "closed"


FIELDS = {"size": Field(())}


def served(context):
    first, count = (context.node_config[name] for name in ("first-party", "parties"))
    return range(first, first + count)


def answer(context, message):
    parties = np.array(served(context))
    sizes = Submission("counts", parties, {"size": 10.0 * parties})
    return Message(encode_submission(sizes, FIELDS), reply_to=message)


@pytest.fixture
def messages():
    grid = InlineGrid("parties.app:app")
    return [grid.create_message(RecordDict(), "query.counts", 1, "") for _ in range(2)]


def node(parties):
    [context] = Placement(parties, parties, SYNTHETIC, 1).contexts()
    return context


def recovered(messages, parties, deadly):
    """All replies, when whoever serves one of the `deadly` dies each time."""
    recovery, waiting = Recovery(messages), [node(parties)]
    while recovery.outstanding:
        context = waiting.pop(0)
        if deadly & set(served(context)):
            waiting += recovery.divide(context)
        else:
            recovery.add(context, [answer(context, message) for message in messages])
    assert waiting == []
    return recovery.replies()


def test_of_a_whole_node_replies_and_errors_pass_as_they_are(messages):
    context = node(5)
    for replies in (
        [answer(context, message) for message in messages],
        [Message(Error(1, "disk full"), reply_to=message) for message in messages],
    ):
        recovery = Recovery(messages)
        recovery.add(context, replies)
        assert recovery.outstanding == 0
        assert recovery.replies() is replies


@pytest.mark.parametrize(("parties", "deadly"), [(2, {1}), (7, {0}), (8, {3, 4}), (13, {12})])
def test_the_culprit_is_lost_alone(messages, parties, deadly):
    replies = recovered(messages, parties, deadly)
    assert [reply.metadata.reply_to_message_id for reply in replies] == [m.metadata.message_id for m in messages]
    for reply in replies:
        found = decode_submission(reply.content, FIELDS)
        assert sorted(found.parties) == [party for party in range(parties) if party not in deadly]
        np.testing.assert_array_equal(found.arrays["size"], 10.0 * found.parties)
        assert found.failures == dict.fromkeys(deadly, DIED)


@pytest.mark.parametrize("parties", [1, 4])
def test_where_everybody_is_lost_every_message_has_an_error(messages, parties):
    replies = recovered(messages, parties, set(range(parties)))
    assert [reply.error.code for reply in replies] == [ErrorCode.CLIENT_APP_CRASHED] * len(messages)
    assert {reply.error.reason for reply in replies} == {DIED}


@pytest.mark.slow
def test_an_error_of_a_part_loses_the_parties_of_that_part(messages):
    recovery = Recovery(messages)
    first, second = recovery.divide(node(5))
    recovery.add(first, [Message(Error(1, "disk full"), reply_to=message) for message in messages])
    assert recovery.outstanding == 1
    recovery.add(second, [answer(second, message) for message in messages])
    found = decode_submission(recovery.replies()[0].content, FIELDS)
    assert found.failures == {0: "disk full", 1: "disk full"}
    assert sorted(found.parties) == [2, 3, 4]
