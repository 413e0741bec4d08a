"""What an aggregator and its sites agree on."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.exchanges import agreement_for
from support.questions import QUESTIONS
from support.refusals import refused

from federation.contract.errors import InputError
from federation.contract.guarantee import Unit
from federation.engines.codec import parts_of, read_again
from federation.secure_aggregation.masks import CHECK
from federation.secure_aggregation.messages import LETTER, Letters, Table
from federation.signed_messages.aggregation_messages import SumAnswer
from federation.signed_messages.agreement import Agreement, require_agreed, terms, unlike
from federation.signed_messages.keys import new_site_key, public_text

KEYS = [new_site_key().public_key() for _ in range(2)]
SIGNING = Ed25519PrivateKey.generate()


def agreement(*questions, **changed):
    return agreement_for(SIGNING, KEYS, *questions, **changed)


@pytest.mark.parametrize("kind", QUESTIONS)
def test_what_was_agreed_on_may_be_asked_and_what_nobody_agreed_to_is_named(kind):
    known = agreement(*QUESTIONS.values())
    require_agreed(QUESTIONS[kind], known)
    assert [unlike(asked, type(QUESTIONS[asked.kind])) for asked in known.asked if asked.kind == kind] == [[]]
    with pytest.raises(InputError, match=kind):
        require_agreed(QUESTIONS[kind], agreement(*(one for name, one in QUESTIONS.items() if name != kind)))


@pytest.mark.parametrize("kind", QUESTIONS)
def test_whatever_no_answer_changes_must_be_as_agreed(kind):
    question, agreed = QUESTIONS[kind], agreement(QUESTIONS[kind])
    plain = {name: value for name, value in parts_of(question)[0].items() if type(value) in (int, float)}
    tried = 0
    for name, value in plain.items():
        try:
            other = read_again(question, {name: value + 1})
        except InputError:
            continue
        tried += 1
        if any(name == part or name.startswith(f"{part}.") for part in question.varies):
            require_agreed(other, agreed)
        else:
            refused(None, require_agreed, other, agreed)
    assert tried or kind == "error_marginals"


def test_arrays_are_agreed_on_to_the_bit():
    question = QUESTIONS["votes"]
    rows = next(field.name for field in fields(question) if isinstance(getattr(question, field.name), np.ndarray))
    moved = getattr(question, rows).copy()
    moved.flat[0] = np.nextafter(moved.flat[0], np.inf)
    with pytest.raises(InputError, match=f"'{rows}'"):
        require_agreed(replace(question, **{rows: moved}), agreement(question))
    assert terms(question)[rows].startswith("sha256:")


def test_a_digest_changes_with_anything(tmp_path):
    known = agreement(QUESTIONS["counts"], closing=0.0)
    plain = json.loads(known.canonical())
    for name, value in plain.items():
        other = {"name": "x", "protocol": "x", "superlink": "x:1", "root": "x", "options": {"a": 1}, "missing": True}
        if name in other and value != other[name]:
            changed = Agreement.model_validate_json(json.dumps({**plain, name: other[name]}))
            assert changed.digest != known.digest
    shuffled = Agreement.model_validate_json(json.dumps(dict(reversed(plain.items())), indent=3))
    assert shuffled.digest == known.digest


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"version": 2}, "1"),
        *(
            ({"sites": [{"name": name, "key": public_text(KEYS[0])} for name in names]}, None)
            for names in ("aa", "ab", "aA")
        ),
        ({"sites": [{"name": "../x"}]}, r"sites\.0\.name"),
        *(({"quorum": quorum}, "quorum") for quorum in (0.0, float("nan"))),
        ({"closing": 253_402_300_800}, None),
        ({"closing": -1}, "closing"),
        ({"seed": 1}, "seed"),
        ({"promises": []}, "promises"),
    ],
)
def test_a_file_that_is_none_is_refused_by_name(tmp_path, changed, why):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(json.loads(agreement(QUESTIONS["counts"]).canonical()) | changed))
    with pytest.raises(InputError, match=why) as refusal:
        Agreement.load(path)
    assert str(path) in str(refusal.value)


def test_an_invitation_has_no_keys():
    known = agreement(QUESTIONS["counts"], sites=[{"name": "north"}, {"name": "south"}])
    assert not known.sealed
    assert agreement(QUESTIONS["counts"]).sealed
    assert known.position("south") == 1
    with pytest.raises(InputError, match=r"sout.*south"):
        known.position("sout")


def test_promises_are_told_apart_by_who_keeps_them():
    known = agreement(QUESTIONS["counts"])
    assert known.promised(trusted=True).unit is Unit.PARTY
    assert known.promised(trusted=False).unit is Unit.LABEL
    promise = json.loads(known.canonical())["promises"][0]
    with pytest.raises(InputError):
        agreement(QUESTIONS["counts"], promises=[promise]).promised(trusted=True)


def test_what_sites_send_one_another_in_a_secure_sum_has_room_in_a_reply():
    plain = agreement(QUESTIONS["counts"])
    assert not plain.secure
    assert plain.longest_reply == plain.asked[0].reply
    asked = (plain.asked[0].model_copy(update={"masked": True}),)
    many = plain.model_copy(update={"asked": asked, "sites": plain.sites[:1] * 1000})
    assert many.secure
    others = len(many.sites) - 1
    letters = Table(np.arange(others), np.zeros((others, LETTER), np.uint8))
    reply = SumAnswer(Letters(bytes(CHECK), letters).packed()).packet()
    assert len(reply) < many.longest_reply - plain.longest_reply


def test_two_servers_are_two():
    counted, masks = QUESTIONS["counts"], "ab" * 32
    second = {"name": "ombud", "key": public_text(new_site_key().public_key()), "masks": masks}
    two = agreement(counted, servers="two", second=second)
    assert two.sealed
    assert [one.name for one in two.members] == [*(site.name for site in two.sites), "ombud"]
    assert two.position("ombud") == len(two.sites) == len(two.keys) - 1
    assert not two.invitation.sealed
    assert two.invitation.second.masks == ""
    assert two.digest != agreement(counted, servers="two", second={**second, "masks": "cd" * 32}).digest
    assert not agreement(counted, servers="two", second={**second, "masks": ""}).sealed
    for changed in (
        {"servers": "two"},
        {"servers": "one", "second": second},
        {"servers": "two", "second": {**second, "name": two.sites[0].name.upper()}},
        {"servers": "two", "second": {**second, "key": two.sites[0].key}},
        {"servers": "two", "second": {**second, "masks": masks.upper()}},
    ):
        with pytest.raises(ValueError, match=r"second server|have the same|pattern"):
            agreement(counted, **changed)
