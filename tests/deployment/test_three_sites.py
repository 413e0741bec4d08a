"""What the page on three sites says happens, and what a hostile bundle gets from the same sites."""

import hashlib
import json
import textwrap
import time
from dataclasses import replace

import numpy as np
import pytest
from flwr.cli.build import build_fab_from_disk
from flwr.common.serde import fab_to_proto, user_config_to_proto
from flwr.proto.control_pb2 import ListRunsRequest, StartRunRequest
from flwr.supercore.fab import Fab

from federation.signed_messages.agreement import Agreement
from federation.signed_messages.messages import JOURNAL, SealedAnswer, SignedQuestion
from parties.site.accounts import Journal
from scenarios.scores.prediction import choose

SITES = ["north", "south", "west"]


@pytest.fixture(scope="module")
def released(trial):
    """What collecting has printed."""
    return trial.do("federation collect trial")


def journal(trial, site):
    return Journal(trial.folder / site / "state" / "journal.jsonl", reading=True).lines


def test_the_page_leads_to_a_release(trial, released):
    assert "wrote" in released
    model = trial.folder / "trial/releases/001/mean_operator-row.npz"
    chosen = choose(model)
    assert chosen.models.classes == ("malignant", "benign")
    assert chosen.used.guarantee["epsilon"] <= 3
    world = trial.world()
    assert world["answered"] == 3
    assert not world["disclosure"]["simulation"]
    promised = world["ledger"]["releases"][0]["guarantee"]
    assert (promised["unit"], promised["parameters"]["entropy"]) == ("row", "system")
    for command in ("predict trial/releases/001/mean_operator-row.npz pilot.csv --out predicted.csv", "spent", "log"):
        trial.do(f"federation {command}" if "predict" in command else f"federation party {command} north/site.toml")
    predicted = (trial.folder / "predicted.csv").read_text().splitlines()[1:]
    truth = (trial.folder / "pilot.csv").read_text().splitlines()[1:]
    right = [line.split(",")[1] == true.split(",")[-1].strip('"') for line, true in zip(predicted, truth, strict=True)]
    assert np.mean(right) > 0.75  # .9 in most; the noise is the system's


def test_once_more_nothing_is_asked_and_nothing_spent(trial, released):
    model = trial.folder / "trial/releases/001/mean_operator-row.npz"
    before, known = model.read_bytes(), {site: len(journal(trial, site)) for site in SITES}
    assert "was released already" in trial.do("federation collect trial")
    assert model.read_bytes() == before
    assert {site: len(journal(trial, site)) for site in SITES} == known


def test_another_exchange_is_beyond_the_budget(trial, released):
    with pytest.raises(RuntimeError, match=r"3.*epsilon.*6"):
        trial.do("federation collect trial --new-exchange")
    for site in SITES:
        assert trial.events(site).count("charged") == 1


def test_a_site_was_charged_before_it_answered_and_sent_nothing_else(trial, released):
    for site in SITES:
        # A hostile bundle may have been refused in the meantime: tests of this file run in any order.
        told = [event for event in trial.events(site) if event in ("charged", "begun", "answered")]
        assert told == ["charged", "begun", "answered"]


LOOT = """
from flwr.app import Message, RecordDict, ConfigRecord
from flwr.serverapp import ServerApp
import json, time
app = ServerApp()

@app.main()
def main(grid, context):
    nodes, got, kinds = list(grid.get_node_ids()), [], {kinds}
    for kind, content in kinds:
        records = RecordDict()
        for name, parts in content.items():
            records[name] = ConfigRecord({{key: bytes.fromhex(part) for key, part in parts.items()}})
        out = [Message(records, node, kind) for node in nodes]
        sent, until = [one for one in grid.push_messages(out) if one], time.time() + {seconds}
        while sent and time.time() < until:
            for reply in grid.pull_messages(sent):
                sent.remove(reply.metadata.reply_to_message_id)
                got.append([kind, reply.error.reason if reply.has_error() else str(reply.content)])
            time.sleep(0.3)
        got.append([kind, f"{{len(sent)}} silent"])
    open({path!r}, "w").write(json.dumps([len(nodes), got]))
"""

STEALING = """
from flwr.clientapp import ClientApp
from flwr.app import Message, RecordDict, ConfigRecord
app = ClientApp()

@app.query("loot")
def loot(message, context):
    rows = open({data!r}).read()
    return Message(RecordDict({{"loot": ConfigRecord({{"rows": rows}})}}), reply_to=message)
"""


def submitted(trial, tmp_path, kinds, client, seconds=25, **files):
    """What a bundle with these files gets from the sites, as the one that submits it writes it down."""
    told, bundle = tmp_path / "told.json", tmp_path / "bundle"
    bundle.mkdir()
    server = LOOT.format(kinds=repr(kinds), path=str(told), seconds=seconds)
    parts = {"stolen.py": server, "thief.py": STEALING.format(data=str(trial.folder / "north/patients.csv"))}
    for name, text in (parts | files).items():
        (bundle / name).parent.mkdir(parents=True, exist_ok=True)
        (bundle / name).write_text(text)
    (bundle / "pyproject.toml").write_text(
        textwrap.dedent(f"""
        [project]
        name = "exchange"
        version = "1.0.0"
        license = "Apache-2.0"
        dependencies = []
        [tool.flwr.app]
        publisher = "federation"
        [tool.flwr.app.components]
        serverapp = "stolen:app"
        clientapp = "{client}"
        [tool.flwr.app.config]
        """)
    )
    content = build_fab_from_disk(bundle)
    fab = fab_to_proto(Fab(hashlib.sha256(content).hexdigest(), content, {}))
    control = trial.link.client
    run = control.StartRun(StartRunRequest(fab=fab, override_config=user_config_to_proto({}), federation="")).run_id
    until = time.monotonic() + 90
    while time.monotonic() < until:
        if control.ListRuns(ListRunsRequest(run_id=run)).run_dict[run].status.status == "finished":
            break
        time.sleep(0.5)
    return json.loads(told.read_text())


def test_a_hostile_bundle_gets_nothing_and_is_named_in_the_journal(trial, released, tmp_path):
    """It reads the rows itself, or has a `parties` of its own; sends questions that nobody signed, and replays one."""
    exchange, packet = opened(trial)
    replayed = {name: part.hex() for name, part in vars(exchange.letter(0, packet, 0)).items()}  # to the north
    unsigned = replayed | {"signature": bytes(64).hex()}
    kinds = [
        ("query.loot", {"loot": {}}),
        ("train", {}),
        ("query.mean_operator", {"question": {"settings": b"{}".hex()}}),
        ("query.mean_operator", {"letter": unsigned}),
        ("query.mean_operator", {"letter": replayed}),
    ]
    own = {"parties/__init__.py": "", "parties/app.py": STEALING.format(data="/x")}
    before = {site: len(journal(trial, site)) for site in SITES}
    nodes, got = submitted(trial, tmp_path, kinds, "parties.app:app", seconds=12, **own)
    assert nodes == 3
    rows = (trial.folder / "north/patients.csv").read_text().splitlines()[1].split(",")
    assert not any(cell in text for _, text in got for cell in rows if len(cell) > 4)
    replies = {kind: [text for known, text in got if known == kind] for kind, _ in kinds}
    assert replies["query.loot"] == ["refused"] * 3 + ["0 silent"]
    assert replies["train"] == ["refused"] * 3 + ["0 silent"]
    told = {site: journal(trial, site)[before[site] :] for site in SITES}
    for site in SITES:
        why = [line["why"] for line in told[site] if line["event"] == "refused"]
        assert any("a message that is no letter" in reason for reason in why)
        assert any("not signed by this aggregator" in reason for reason in why)
        assert "charged" not in [line["event"] for line in told[site]]
    # The letter was for the north: it sends what it has sent, sealed to the coordinator; the others send nothing.
    assert [line["event"] for line in told["north"]].count("answered again") == 1
    assert any("for another site" in line.get("why", "") for line in told["south"])


def test_what_a_hostile_coordinator_signs_costs_no_site_anything(trial, released, tmp_path):
    """With the right key, to the north: a taken number, garbage, what is too long by a byte and by a lot, one more
    exchange, another day and another plan."""
    exchange, packet = opened(trial)
    head, known = exchange.head(0, packet, 0), exchange.letter(0, packet, 0).known
    longest = exchange.agreement.longest_question
    assert len(packet) == longest
    garbage = b"mean_operator\n" + bytes(range(256))
    spoilt = [garbage, packet.ljust(longest + 1, b" "), packet.ljust(2**20, b" ")]
    signed = [
        (replace(head, number=1), packet),
        *((replace(head, question=hashlib.sha256(each).digest()), each) for each in spoilt),
        (replace(head, exchange=bytes(16)), packet),
        (replace(head, closing=head.closing + 1), packet),
        (replace(head, plan=bytes(32)), packet),
    ]
    letters = [vars(SignedQuestion.signed(each, content, exchange.signing, known)) for each, content in signed]
    kinds = [
        ("query.mean_operator", {"letter": {name: part.hex() for name, part in letter.items()}}) for letter in letters
    ]
    before = len(journal(trial, "north"))
    submitted(trial, tmp_path, kinds, "stolen:app", seconds=6)
    told = journal(trial, "north")[before:]
    assert {line["event"] for line in told} == {"refused"}
    reasons = [line["why"] for line in told]
    for cause in (
        "another question was answered in this place of the exchange",
        "a packet cannot be read",
        f"the question has {longest + 1} bytes, and the longest of the plan {longest}",
        "which no letter of the plan has",
        "releases of this table would spend",
        "of a plan that this site does not serve",
    ):
        assert any(cause in reason for reason in reasons), (cause, reasons)


def test_what_is_no_bundle_costs_nobody_anything(trial, released):
    fab = fab_to_proto(Fab(hashlib.sha256(b"no zip").hexdigest(), b"no zip", {}))
    with pytest.raises(Exception):  # noqa: B017 - whatever Flower says
        trial.link.client.StartRun(StartRunRequest(fab=fab, override_config=user_config_to_proto({}), federation=""))
    assert all(process.poll() is None for process in trial.sites.values())


def test_no_site_has_ever_fetched_an_app(trial, released):
    for site in SITES:
        assert not [*(trial.folder / site).rglob("*.fab")]
        assert "FAB" not in trial.log(site)
    assert "get-fab" not in (trial.folder / "trial/superlink/log").read_text().lower()


def test_an_answer_is_as_long_as_the_plan_says(trial, released):
    """The SuperLink takes nothing that is much longer."""
    agreement = Agreement.load(trial.folder / "trial/plan.json")
    for reply in (trial.folder / "trial/exchanges/001").glob("*.reply"):
        assert len(SealedAnswer.decoded(reply.read_bytes()).sealed) == agreement.longest_reply + JOURNAL + 16
    assert f"--longest-letter {agreement.longest_reply} " in (trial.folder / "trial/superlink/log").read_text()


def opened(trial):
    """The exchange, and its first question."""
    from aggregator.exchange.exchange import Exchange
    from scenarios.deployment.folder import Folder

    folder = Folder.opened(trial.folder / "trial")
    exchange = Exchange.opened(folder.exchange("001"), folder.agreement, folder.signing_key)
    return exchange, (folder.exchange("001") / "00000.question").read_bytes()


def test_sites_end_when_they_are_told_to(trial, released):
    assert trial.stop("west") == 0
    assert trial.events("west")[-1] == "stop"
    trial.serve("west")
