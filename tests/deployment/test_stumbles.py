"""Sites that stumble while they are asked: each says at its own side what to mend, costs no other, and pays once."""

import ctypes
import re
import resource
import subprocess
import sys
import threading
import time
from dataclasses import asdict

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from flwr.app import ConfigRecord, Metadata, RecordDict
from flwr.app.message.message import make_message
from support.trials import environment, following, wait_until

from federation.signed_messages.agreement import Agreement
from federation.signed_messages.keys import load_key
from federation.signed_messages.messages import LETTER, SHORTEST_REPLY, SealedAnswer, SignedQuestion
from parties.site.message_queue import Mailbox

pytestmark = [pytest.mark.slow, pytest.mark.servers]

_DROP_FROM_BOUNDS, _WRITING_ANYWHERE = 24, 1  # of the kernel: PR_CAPBSET_DROP, CAP_DAC_OVERRIDE

# A site whose clock is ten minutes ahead, for whatever asks what time it is.
AHEAD = """
import sys, time, datetime
import flwr.supercore.date as date
import flwr.supernode.node_auth_http_interceptor as signing
known, right = time.time, date.now
time.time = lambda: known() + 600
signing.now = lambda: right() + datetime.timedelta(seconds=600)
sys.argv = ["federation", "party", "run", "west/site.toml"]
from scenarios.cli import main
main()
"""


@pytest.fixture
def trial(tmp_path):
    """The page, followed until sites are to serve."""
    with following(tmp_path, until="federation party run", **{"seconds = 12/": "seconds = 20/"}) as found:
        yield found


def followed(trial, site, *words):
    """Serve a site; what it says, as it says it: a log that is a file may not be written to either."""
    process = subprocess.Popen(
        [sys.executable, *words], cwd=trial.folder, env=environment(), stderr=subprocess.PIPE, text=True
    )
    trial.sites[site], said = process, []
    threading.Thread(target=lambda: [said.append(line) for line in process.stderr], daemon=True).start()
    return said


def test_each_stumble_is_told_where_it_can_be_mended(trial):
    """A ledger that may only be read, a column that was renamed, a clock that is ahead."""
    trial.serve("south")
    said = followed(trial, "north", "-m", "scenarios.cli", "party", "run", "north/site.toml")
    ahead = followed(trial, "west", "-c", AHEAD)
    wait_until(lambda: all("cannot be reached" in "".join(one) for one in (said, ahead, [trial.log("south")])))
    table = trial.folder / "south/patients.csv"
    right = table.read_text()
    table.write_text(right.replace("mean_radius", "radius", 1))
    north = trial.sites["north"].pid
    resource.prlimit(north, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))  # no file of it gets longer
    process = trial.collecting("--patience", "100s")
    try:
        wait_until(lambda: "nothing is answered until it can be written (File too large)" in "".join(said))
        wait_until(lambda: "has no column 'mean_radius'" in trial.log("south"))
        wait_until(lambda: "or this machine's clock is more than 5 seconds ahead" in "".join(ahead))
        assert not any("charged" in trial.events(site) for site in ("north", "south", "west"))
        checked = subprocess.run(
            [sys.executable, "-m", "scenarios.cli", "party", "check", "south/site.toml"],
            cwd=trial.folder, env=environment(), capture_output=True, text=True,
        )  # fmt: skip
        assert checked.returncode == 2
        assert re.search(r"data\.columns.*mean_radius.*NAME.*HERE", checked.stderr)
        resource.prlimit(north, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        table.write_text(right)
        _, told = process.communicate(timeout=400)
    finally:
        process.kill()
    assert process.returncode == 0, told
    assert "(not connected: west)" in told
    for site in ("north", "south"):
        assert [trial.events(site).count(one) for one in ("charged", "begun", "answered")] == [1, 1, 1]
    assert trial.world()["answered"] == 2


def bound_by_permissions():
    """Of a process that begins: also root then writes only where it is allowed to."""
    ctypes.CDLL(None).prctl(_DROP_FROM_BOUNDS, _WRITING_ANYWHERE)


def said_by(trial, *words):
    """How a command ends, and what it says."""
    process = subprocess.run(
        [sys.executable, "-m", "scenarios.cli", *words],
        cwd=trial.folder, env=environment(), capture_output=True, text=True, preexec_fn=bound_by_permissions,
    )  # fmt: skip
    return process.returncode, process.stderr


def test_other_classes_at_a_site_and_a_ledger_that_may_only_be_read(tmp_path):
    """Labels are protected, so that a class which nobody knows is an error, and not the first one."""
    with following(tmp_path, until="federation party check", **{"protect: row": "protect: label"}) as trial:
        for site in ("north", "south", "west"):
            path = tmp_path / site / "site.toml"
            path.write_text(path.read_text().replace("public-features = false", "public-features = true"))
        table, south = tmp_path / "south/patients.csv", tmp_path / "south/site.toml"
        table.write_text(table.read_text().replace("malignant", "M").replace("benign", "B"))
        code, told = said_by(trial, "party", "run", "south/site.toml")
        assert (code, "none of the classes malignant, benign" in told) == (2, True)
        given = 'outcome = {from = "diagnosis"'
        assert given + ', map = {"' in told
        south.write_text(south.read_text().replace(given + "}", given + ', map = {"M" = "malignant", "B" = "benign"}}'))
        for site in ("north", "south", "west"):
            trial.do(f"federation party approve {site}/site.toml")
            trial.serve(site)
        ledger = tmp_path / "trial"
        ledger.chmod(0o500)
        code, told = said_by(trial, "collect", "trial")
        ledger.chmod(0o700)
        assert code == 2
        assert f"nothing more can be written to {ledger} (Permission denied); let this user write there" in told
        assert not any("charged" in trial.events(site) for site in trial.sites)
        assert "wrote" in trial.do("federation collect trial")
        assert trial.world()["answered"] == 3
        assert all(trial.events(site).count("charged") == 1 for site in trial.sites)


def instruction(known):
    """What Flower takes for a letter of the coordinator, and would hand on to whoever it is for: here, who sends it."""
    metadata = Metadata(known.run_id, "", 1, known.dst_node_id, "", "", time.time(), 3600.0, "query.loot")
    return make_message(metadata=metadata, content=RecordDict({LETTER: ConfigRecord({"a": b"b"})}))


def test_a_hostile_site_sends_garbage_and_too_much_and_costs_nobody_anything(trial):
    """It has a key of the plan, and answers with letters of all kinds that are none, the last of them a large one."""
    for site in ("north", "south"):
        trial.serve(site)
    agreement = Agreement.load(trial.folder / "west/plan.json")
    key = load_key(trial.folder / "west/key", EllipticCurvePrivateKey)
    box = Mailbox(agreement.superlink, agreement.root.encode(), key, 2**26, lambda why: None)
    sent = []

    def hostile():
        with box.opened():
            while not box.closing.is_set():
                if (letter := box.fetch()) is None:
                    box.closing.wait(0.2)
                    continue
                head = SignedQuestion(**letter.parts).opened(agreement.aggregator_key)
                garbage = [
                    {"a": b"b"},
                    {"ephemeral": b"", "sealed": b"", "signature": b""},
                    asdict(SealedAnswer.sealed_for(head, b"\7" * SHORTEST_REPLY, key)),
                    asdict(SealedAnswer.sealed_for(head, b"\0" + b"\xff" * SHORTEST_REPLY, key)),
                    asdict(SealedAnswer.sealed_for(head, bytes(2**22), key)),
                ][len(sent) % 5]
                box.reply(letter, garbage)
                box._push(instruction(letter.message.metadata))
                sent.append(letter)

    thread = threading.Thread(target=hostile, daemon=True)
    thread.start()
    process = trial.collecting("--patience", "100s")
    try:
        _, told = process.communicate(timeout=400)
    finally:
        process.kill()
        box.closing.set()
        thread.join(40)
    assert process.returncode == 0, told
    assert len(sent) >= 5
    log = (trial.folder / "trial/superlink/log").read_text()
    assert log.count('"POST /v1/fleet/push-object HTTP/1.1" 413') >= 1
    assert log.count('"POST /v1/fleet/push-messages HTTP/1.1" 403') == len(sent)
    assert (trial.folder / "trial/exchanges/001/00000-00002.left").exists()
    assert (trial.folder / "trial/superlink/state.db").stat().st_size < 2**22
    assert (trial.world()["answered"], "west" in told) == (2, True)
