"""What keeps a site from serving a plan, before anything is asked."""

import json
import re

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from support.questions import QUESTIONS
from support.site_folders import site_folder

from federation.signed_messages.agreement import Agreement, terms
from federation.signed_messages.keys import load_key, new_site_key, public_text, sums_key
from parties.site.policy import objections
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


def test_a_plan_that_is_as_the_policy_has_it_is_served(wrong):
    assert wrong() == []


def test_a_second_server_without_a_key_for_masks_is_not_served(of_sums):
    """Nobody could have written it into policy.second-servers, and sums would be those of one server."""
    second = {"name": "ombud", "key": public_text(new_site_key().public_key()), "masks": ""}
    two = (("[policy]", '[policy]\nservers = ["two"]'),)
    assert "the plan is an invitation only; wait for the one with all keys" in of_sums(
        *two, servers="two", second=second
    )


VOTES = {"kind": "votes", "times": 1, "same": terms(QUESTIONS["votes"]), "length": 1, "reply": 1}
OTHER = {"name": "north", "key": public_text(new_site_key().public_key())}


@pytest.mark.parametrize(
    ("replaced", "changed", "said"),
    [
        (
            ('aggregators = ["', f'aggregators = ["{"0" * 64}"] #'),
            {},
            "is not in policy.aggregators; compare it by telep",
        ),
        (
            ("class_ratio", "class_ratios"),
            {},
            "the plan's protocol is 'class_ratio', and policy.protocols allows class_r",
        ),
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


def test_a_plan_may_ask_as_many_questions_as_the_policy_allows(wrong):
    asked = [QUESTIONS["votes"], QUESTIONS["counts"]]
    assert wrong(("[policy]", "[policy]\nmost-questions = 2"), questions=asked) == []


def test_public_features_may_leave_where_the_policy_says_that_they_are(wrong):
    assert wrong(("[policy]", "[policy]\npublic-features = true"), public_features=True) == []


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


def test_a_plan_with_secure_sums_that_hide_enough_is_served(of_sums):
    assert of_sums() == []


@pytest.mark.parametrize(
    ("replaced", "changed", "said"),
    [
        ((), {"own": ""}, "the plan has no key for secure sums of 'north'; its .pub file has it in the second line"),
        ((), {"own": public_text(sums_key(new_site_key()).public_key())}, "'north' is not this site's; send its coor"),
        (
            (("[policy]", "[policy]\ncolluding = 0.5"),),
            {},
            "hide a site's part from 1 colluding sites of 3, and by pol",
        ),
        ((), {"quorum": 0.3}, "shares of noise need a party that answers and colludes with nobody"),
    ],
)
def test_a_plan_whose_secure_sums_hide_too_little_is_not_served(of_sums, replaced, changed, said):
    assert any(said in sentence for sentence in of_sums(*replaced, **changed))
