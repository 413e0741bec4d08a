"""A plan is told to a site and to a second server in words, with what keeps each of them from serving it."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.exchanges import agreement_for
from support.questions import QUESTIONS
from support.second_folders import second_folder
from support.site_folders import site_folder

from aggregator.contract.disclosure import Protection
from federation.signed_messages.agreement import Agreement
from federation.signed_messages.keys import new_site_key, public_text, save_key, sums_key
from parties.site.settings import SecondSettings, Settings
from scenarios.deployment.site_texts import _secure, numbers_of, outlook, outlook_of_second

PUBLIC = ("[policy]", "[policy]\npublic-features = true")
KEY = "ab" * 32
COUNTED = {"kind": "counts", "times": 1, "same": {}, "length": 1, "reply": 1, "masked": True}


@pytest.fixture
def looked(tmp_path):
    def at(*replaced, **changed):
        settings = Settings.load(site_folder(tmp_path, replaced=replaced, **changed))
        return outlook(settings, Agreement.load(settings.plan))

    return at


@pytest.mark.parametrize(
    ("kind", "said"), [("votes", Protection.AGGREGATOR), ("rows", Protection.PUBLIC), ("counts", Protection.PARTY)]
)
def test_each_question_is_told_with_what_protects_its_answer(looked, kind, said):
    found = looked(PUBLIC, questions=[QUESTIONS[kind]])
    line = next(line for line in found.lines if line.startswith(f"  {kind}, once at most: "))
    assert line.endswith(f" Protected by: {said}.")
    assert found.errors == []


def test_a_question_that_nobody_here_can_answer_is_told(looked, tmp_path):
    found = looked(asked=[{"kind": "loot", "times": 3, "same": {}, "length": 1, "reply": 1}])
    assert any(line.startswith("  loot: cannot be answered here: ") for line in found.lines)
    assert len(found.errors) == 1


def test_what_it_costs_and_what_is_left(looked):
    found = looked()
    local = "noise is added by each party (local DP)"
    assert f"what an exchange costs: epsilon 1, delta 0 for one label (replace); {local}" in found.lines
    central = "noise is added by the aggregator (central DP)"
    assert f"what an exchange costs: epsilon 1, delta 0 for one party (replace); {central}" in found.lines
    assert "spent by table 'patients', label/replace: epsilon 0 of 1.5, delta 0 of 0" in found.lines
    assert (found.over, found.rows, found.lines[-1]) == (False, 40, "ready")
    assert "table 'patients': 40 rows, ill no 14, yes 26, maybe 0" in found.lines


def test_labels_are_told_to_whoever_knows_what_they_should_be(looked):
    real = looked(label={"name": "r", "range": [0.0, 5.0]}, columns=[{"name": "p"}, {"name": "q"}])
    assert "table 'patients': 40 rows, r from 0 to 4" in real.lines


def test_a_promise_that_converts_to_no_account_is_told(looked):
    found = looked(("[allowance.label]", "[allowance.row]"))
    assert found.errors == ["nothing is proved for row/replace from a release that protects label/replace"]
    assert not found.over


def test_a_plan_says_nothing_that_moves_a_terminals_cursor(looked):
    found = looked(name="\x1b[2Jtrial", protocol="class_ratio\x1b[1A")
    assert all(text.isprintable() for text in [*found.lines, *found.errors])
    assert "plan: ' [2Jtrial'" in found.lines[0]


def test_a_secure_sum_is_told_with_what_it_rests_on(looked, tmp_path):
    keys = [new_site_key() for _ in range(3)]
    sites = [
        {"name": name, "key": public_text(key.public_key()), "sums": public_text(sums_key(key).public_key())}
        for name, key in zip(("north", "south", "west"), keys, strict=True)
    ]
    found = looked(questions=[QUESTIONS["counts"]], sites=sites, asked=[COUNTED], quorum=1.0)
    [line] = [line for line in found.lines if line.startswith("  counts, once at most: ")]
    assert line.endswith(f" Protected by: {Protection.SHARES}.")
    assert any(line.startswith("secure aggregation: at least 3 of 3 sites take part") for line in found.lines)
    assert any("(distributed DP with secure aggregation)" in line for line in found.lines)
    believed = outlook(
        Settings.load(tmp_path / "site.toml"),
        Agreement.load(tmp_path / "plan.json").model_copy(update={"servers": "one_semi_honest"}),
    )
    assert any("policy.servers: one_semi_honest" in line for line in believed.lines)
    assert any('write "one_semi_honest" there, too, if this site believes that' in line for line in believed.errors)


@pytest.fixture
def second_words_looked(tmp_path):
    path = second_folder(tmp_path)

    def at(old="", new="", **changed):
        path.write_text(path.read_text().replace(old, new))
        settings = SecondSettings.load(path)
        return outlook_of_second(settings, Agreement.load(settings.plan).model_copy(update=changed))

    return at


def test_it_holds_no_rows_and_is_told_what_rests_on_it(second_words_looked, tmp_path):
    found = second_words_looked()
    assert (found.errors, found.rows, found.lines[-1]) == ([], None, "ready")
    text = "\n".join(found.lines)
    masks = Agreement.load(tmp_path / "ombud" / "plan.json").second.masks
    for said in ("and no rows", "needs no table", "at least 3 of 3 sites", masks, "with all sites", "ombud"):
        assert said in text
    assert len(found.waiting) == 1


@pytest.mark.parametrize(
    ("old", "new", "changed", "said"),
    [
        ('aggregators = ["', f'aggregators = ["{"0" * 64}"] #', {}, "is not in policy.aggregators"),
        ('name = "ombud"', 'name = "north"', {}, "'north' is not the second server of this plan"),
        ("colluding = 0.1", "colluding = 0.5", {}, "2 may collude; lower it"),
        ("", "", {"closing": 0}, "the plan has closed"),
    ],
)
def test_each_objection_is_a_sentence(second_words_looked, old, new, changed, said):
    found = second_words_looked(old, new, **changed)
    assert said in " ".join(found.errors)
    assert found.lines[-1] == "NOT ready"


def test_a_plan_with_keys_of_somebody_else_is_none_to_serve(second_words_looked, tmp_path):
    key = tmp_path / "ombud" / "key"
    key.unlink()
    save_key(key, new_site_key())
    errors = " ".join(second_words_looked().errors)
    assert "the plan's key for 'ombud' is" in errors
    assert "the key for masks that the plan has of 'ombud' is not this server's" in errors


@pytest.fixture(params=["one", "one_semi_honest", "two"])
def plan(request):
    sites = [{"name": name} for name in ("north", "south", "west")]
    second = {"second": {"name": "ombud", "masks": KEY}} if request.param == "two" else {}
    known = {"sites": sites, "asked": [COUNTED], "servers": request.param, "quorum": 1.0, "colluding": 0.1}
    return agreement_for(Ed25519PrivateKey.generate(), [], QUESTIONS["counts"], **known, **second)


def test_numbers_and_keys_of_a_secure_aggregation_are_told_to_a_site(plan):
    found = " ".join(_secure(plan, 0.2))
    assert numbers_of(plan) in found
    assert "1 of 3 may collude" in found
    assert "at least 3 of 3 sites" in found
    assert "policy.colluding: 0.2 may" in found
    assert f"policy.servers: {plan.servers}" in found
    assert (KEY in found) is (plan.servers == "two")
