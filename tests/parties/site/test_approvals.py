"""Who has agreed to what: plan by plan, or exchange by exchange."""

import json
import stat

import pytest

from federation.contract.errors import InputError
from parties.site.policy import APPROVED, DENIED, PENDING, Approvals

PLAN, OTHER = bytes(32), bytes([1] * 32)
FIRST, SECOND = bytes(16), bytes([2] * 16)


def test_a_plan_is_approved_once_with_all_its_exchanges(tmp_path):
    approvals = Approvals(tmp_path / "new", "plan")
    waiting = approvals.asked(PLAN, FIRST)
    assert (waiting.state, waiting.exchange, len(waiting.id)) == (PENDING, None, 12)
    decided = Approvals(tmp_path / "new", "plan").decide(None, APPROVED, "ada")
    assert (decided.id, decided.by) == (waiting.id, "ada")
    assert approvals.asked(PLAN, SECOND).state == APPROVED
    assert approvals.asked(OTHER, FIRST).state == PENDING


def test_each_exchange_is_approved_by_itself(tmp_path):
    approvals = Approvals(tmp_path, "each")
    first = approvals.asked(PLAN, FIRST)
    approvals.decide(first.id, APPROVED, "ada")
    assert approvals.asked(PLAN, FIRST).state == APPROVED
    second = approvals.asked(PLAN, SECOND)
    assert (second.state, second.exchange) == (PENDING, SECOND.hex())


def test_nobody_need_approve_where_the_policy_says_so(tmp_path):
    assert Approvals(tmp_path, "auto").asked(PLAN, FIRST).state == APPROVED
    assert [*tmp_path.iterdir()] == []


def test_what_was_approved_can_be_denied(tmp_path):
    approvals = Approvals(tmp_path, "plan")
    name = approvals.asked(PLAN, FIRST).id
    approvals.decide(name, APPROVED, "ada")
    approvals.decide(name, DENIED, "eve")
    assert approvals.asked(PLAN, FIRST).state == DENIED


def test_an_approval_is_of_one_exchange_whatever_others_have_its_id(tmp_path):
    """Ids are for people, and short: whoever asks finds two exchanges with one id in a minute, as these were found."""
    approvals = Approvals(tmp_path, "each")
    shown, other = (number.to_bytes(16, "big") for number in (1629941, 24027707))
    approvals.decide(approvals.asked(PLAN, shown).id, APPROVED, "ada")
    with pytest.raises(InputError, match="'50ebf65fffb3' is also the id of another plan or exchange"):
        approvals.asked(PLAN, other)
    assert approvals.asked(PLAN, shown).state == APPROVED


def test_whoever_asks_cannot_fill_the_disk_with_what_waits(tmp_path):
    approvals = Approvals(tmp_path, "each")
    for number in range(100):
        approvals.asked(PLAN, bytes([number] * 16))
    with pytest.raises(InputError, match="100 already wait for approval"):
        approvals.asked(PLAN, bytes([100] * 16))
    assert approvals.asked(PLAN, FIRST).state == PENDING


def test_without_a_name_only_the_one_that_waits_is_meant(tmp_path):
    approvals = Approvals(tmp_path, "each")
    with pytest.raises(InputError, match="nothing waits for approval"):
        approvals.decide(None, APPROVED, "ada")
    names = [approvals.asked(PLAN, exchange).id for exchange in (FIRST, SECOND)]
    with pytest.raises(InputError, match=f"{names[0]}, {names[1]} wait for approval; name one of them"):
        approvals.decide(None, APPROVED, "ada")
    with pytest.raises(InputError, match=r"'\.\./\.\./key' is not known here; waiting for approval: "):
        approvals.decide("../../key", APPROVED, "ada")


def test_what_is_written_is_private_and_has_a_time(tmp_path):
    approvals = Approvals(tmp_path, "plan")
    name = approvals.asked(PLAN, FIRST).id
    approvals.decide(name, APPROVED, "ada")
    path = tmp_path / f"{name}.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["time"] > 1.6e9


@pytest.mark.parametrize(
    "changed",
    [
        {"ward": 3},
        {"state": None},
        {"time": "yesterday"},
        {"time": float("nan")},
        {"time": 1e17},
        {"time": -1.0},
        {"by": ["ada"]},
        None,
    ],
)
def test_a_decision_that_is_damaged_is_none(tmp_path, changed):
    approvals = Approvals(tmp_path, "plan")
    name = approvals.asked(PLAN, FIRST).id
    path = tmp_path / f"{name}.json"
    known = json.loads(path.read_text())
    path.write_text(json.dumps({} if changed is None else known | changed))
    with pytest.raises(InputError, match=f"{name}.json is damaged; remove it and approve again"):
        approvals.asked(PLAN, FIRST)
    path.unlink()
    assert approvals.asked(PLAN, FIRST).state == PENDING
