"""What keeps a site from serving a plan, before anything is asked.

Who has agreed to what: plan by plan, or exchange by exchange.
"""

import json
import re
import stat

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from support.questions import QUESTIONS
from support.site_folders import site_folder

from federation.contract.errors import InputError
from federation.signed_messages.agreement import Agreement, terms
from federation.signed_messages.keys import load_key, new_site_key, public_text, sums_key
from parties.site.policy import APPROVED, DENIED, PENDING, Approvals, objections
from parties.site.settings import Settings


@pytest.fixture
def wrong(tmp_path):
    def found(*replaced, plan=(), **changed):
        path = site_folder(tmp_path, replaced=replaced, **changed)
        settings = Settings.load(path)
        text = json.loads(settings.plan.read_text())
        agreement = Agreement.model_validate_json(json.dumps(text | dict(plan)))
        return [*objections(settings, agreement, load_key(settings.connection.key, EllipticCurvePrivateKey))]

    return found


@pytest.mark.parametrize(
    ("policy", "changed"),
    [
        ("", {}),
        ("most-questions = 2", {"questions": [QUESTIONS["votes"], QUESTIONS["counts"]]}),
        ("public-features = true", {"public_features": True}),
    ],
)
def test_a_plan_that_is_as_the_policy_has_it_is_served(wrong, policy, changed):
    assert wrong(("[policy]", f"[policy]\n{policy}"), **changed) == []


VOTES = {"kind": "votes", "times": 1, "same": terms(QUESTIONS["votes"]), "length": 1, "reply": 1}
OTHER = {"name": "north", "key": public_text(new_site_key().public_key())}


@pytest.mark.parametrize(
    ("replaced", "changed", "said"),
    [
        (('aggregators = ["', f'aggregators = ["{"0" * 64}"] #'), {}, "is not in policy.aggregators; compare it by te"),
        (("class_ratio", "class_ratios"), {}, "protocol is 'class_ratio', and policy.protocols allows class_r"),
        (('name = "north"', 'name = "nord"'), {}, "the plan has no site 'nord'; it has north; did you mean 'north'?"),
        ((), {"plan": {"sites": [{"name": "north"}]}}, "the plan is an invitation only"),
        ((), {"plan": {"sites": [OTHER]}}, "send its coordinator the .pub file of this one"),
        ((), {"closing": -3600.0}, "the plan has closed, on 20"),
        (
            ("[policy]", "[policy]\nmost-questions = 1"),
            {"questions": [QUESTIONS["votes"], QUESTIONS["counts"]]},
            "the plan asks up to 2 questions in an exchange, and policy.most-questions allows 1; raise it",
        ),
        (
            (),
            {"public_features": True},
            "the plan protects labels alone, and takes all else in a row as public; set policy.public-features = true",
        ),
        (
            (),
            {"plan": {"asked": [{"kind": "loot", "times": 1, "same": {}, "length": 1, "reply": 1}]}},
            "which this installation cannot answer",
        ),
        (
            ("[allowance.label]", '[limits]\nletter = "64KiB"\n[allowance.label]'),
            {"plan": {"asked": [VOTES | {"length": 60_000}]}},
            "the plan's longest question comes in a letter of 76384 bytes, and limits.letter allows 65536; raise it",
        ),
        (
            (),
            {"plan": {"asked": [VOTES | {"same": VOTES["same"] | {"training.alike": True}}]}},
            "'votes' is of another version of the program (training.alike is not in both); this is version 0",
        ),
        (
            (),
            {"plan": {"asked": [VOTES | {"same": {"training.trial": 0, "rows": ""}}]}},
            "is of another version of the program (training.classes, training.classifier, training.feature_map,",
        ),
        (("[allowance.trusted]", "[allowance.row]"), {}, "write [allowance.trusted] if it should be"),
        (("[allowance.label]\nepsilon = 1.5", ""), {}, "of this site's own; write [allowance.label]"),
    ],
)
def test_each_objection_is_a_sentence(wrong, replaced, changed, said):
    found = wrong(*([replaced] if replaced else []), **changed)
    assert len(found) == 1
    assert re.search(re.escape(said), found[0])


@pytest.fixture
def of_sums(tmp_path):
    """What a site objects to in a plan with secure sums, whose `north` it is."""

    def found(*replaced, own=None, **plan):
        settings = Settings.load(site_folder(tmp_path, replaced=replaced))
        key = load_key(settings.connection.key, EllipticCurvePrivateKey)
        keys = {"north": key} | {name: new_site_key() for name in ("south", "west")}
        sites = [
            {"name": name, "key": public_text(one.public_key()), "sums": public_text(sums_key(one).public_key())}
            for name, one in keys.items()
        ]
        sites[0]["sums"] = sites[0]["sums"] if own is None else own
        known = json.loads(settings.plan.read_text()) | {"sites": sites, "quorum": 1.0}
        known["asked"][0]["masked"] = True
        agreement = Agreement.model_validate_json(json.dumps(known | plan))
        return [*objections(settings, agreement, key)]

    return found


@pytest.mark.parametrize(
    ("replaced", "changed", "said"),
    [
        ((), {}, None),
        ((), {"own": ""}, "the plan has no key for secure sums of 'north'; its .pub file has it in the second line"),
        ((), {"own": public_text(sums_key(new_site_key()).public_key())}, "'north' is not this site's; send its coor"),
        (
            (("[policy]", "[policy]\ncolluding = 0.5"),),
            {},
            "hide a site's part from 1 colluding sites of 3, and by pol",
        ),
        ((), {"quorum": 0.3}, "shares of noise need a party that answers and colludes with nobody"),
        # Nobody could have written the helper server into policy.second-servers, and sums would be those of one server.
        (
            (("[policy]", '[policy]\nservers = ["two"]'),),
            {"servers": "two", "second": {**OTHER, "name": "ombud", "masks": ""}},
            "the plan is an invitation only; wait for the one with all keys",
        ),
    ],
)
def test_a_plan_whose_secure_sums_hide_too_little_is_not_served(of_sums, replaced, changed, said):
    found = of_sums(*replaced, **changed)
    assert found == [] if said is None else any(said in sentence for sentence in found)


PLAN, OTHER_APPROVALS = bytes(32), bytes([1] * 32)
FIRST, SECOND = bytes(16), bytes([2] * 16)


def test_a_plan_is_approved_once_with_all_its_exchanges_and_can_be_denied_later(tmp_path):
    approvals = Approvals(tmp_path / "new", "plan")
    waiting = approvals.asked(PLAN, FIRST)
    assert (waiting.state, waiting.exchange, len(waiting.id)) == (PENDING, None, 12)
    decided = Approvals(tmp_path / "new", "plan").decide(None, APPROVED, "ada")
    assert (decided.id, decided.by) == (waiting.id, "ada")
    assert approvals.asked(PLAN, SECOND).state == APPROVED
    assert approvals.asked(OTHER_APPROVALS, FIRST).state == PENDING
    approvals.decide(waiting.id, DENIED, "eve")
    assert approvals.asked(PLAN, FIRST).state == DENIED
    path = tmp_path / "new" / f"{waiting.id}.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["time"] > 1.6e9


def test_each_exchange_is_approved_by_itself_or_nobody_need_approve(tmp_path):
    approvals = Approvals(tmp_path / "each", "each")
    first = approvals.asked(PLAN, FIRST)
    approvals.decide(first.id, APPROVED, "ada")
    assert approvals.asked(PLAN, FIRST).state == APPROVED
    second = approvals.asked(PLAN, SECOND)
    assert (second.state, second.exchange) == (PENDING, SECOND.hex())
    assert Approvals(tmp_path / "auto", "auto").asked(PLAN, FIRST).state == APPROVED
    assert [*(tmp_path / "auto").iterdir()] == []


def test_an_approval_is_of_one_exchange_whatever_others_have_its_id(tmp_path):
    """Ids are for people, and short: whoever asks finds two exchanges with one id in a minute, as these were found."""
    approvals = Approvals(tmp_path, "each")
    shown, other = (number.to_bytes(16, "big") for number in (1629941, 24027707))
    approvals.decide(approvals.asked(PLAN, shown).id, APPROVED, "ada")
    with pytest.raises(InputError, match="50ebf65fffb3"):
        approvals.asked(PLAN, other)
    assert approvals.asked(PLAN, shown).state == APPROVED


@pytest.mark.slow
def test_whoever_asks_cannot_fill_the_disk_with_what_waits(tmp_path):
    approvals = Approvals(tmp_path, "each")
    for number in range(100):
        approvals.asked(PLAN, bytes([number] * 16))
    with pytest.raises(InputError, match="100"):
        approvals.asked(PLAN, bytes([100] * 16))
    assert approvals.asked(PLAN, FIRST).state == PENDING


def test_without_a_name_only_the_one_that_waits_is_meant(tmp_path):
    approvals = Approvals(tmp_path, "each")
    with pytest.raises(InputError):
        approvals.decide(None, APPROVED, "ada")
    names = [approvals.asked(PLAN, exchange).id for exchange in (FIRST, SECOND)]
    with pytest.raises(InputError, match=rf"{names[0]}.*{names[1]}"):
        approvals.decide(None, APPROVED, "ada")
    with pytest.raises(InputError, match=r"/\.\./key"):
        approvals.decide("../../key", APPROVED, "ada")


@pytest.mark.parametrize(
    "changed",
    [
        {"ward": 3},
        {"state": None},
        {"time": "yesterday"},
        {"time": float("nan")},
        {"time": 1e17},
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
    with pytest.raises(InputError, match=rf"{name}\.json"):
        approvals.asked(PLAN, FIRST)
    path.unlink()
    assert approvals.asked(PLAN, FIRST).state == PENDING
