"""What a plan means for a site, in words of people.

What a second server is told of a plan, and what keeps it from serving one.

What secure sums rest on is said to whoever decides, and nothing is said that the servers do not keep.
"""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.exchanges import agreement_for
from support.questions import QUESTIONS
from support.second_folders import second_folder
from support.site_folders import site_folder

from federation.signed_messages.agreement import Agreement
from federation.signed_messages.keys import new_site_key, public_text, save_key, sums_key
from parties.site.settings import SecondSettings, Settings
from scenarios.deployment.site_texts import compared, for_site, outlook, outlook_of_second, promised, unseen

PUBLIC = ("[policy]", "[policy]\npublic-features = true")


@pytest.fixture
def looked(tmp_path):
    def at(*replaced, **changed):
        settings = Settings.load(site_folder(tmp_path, replaced=replaced, **changed))
        return outlook(settings, Agreement.load(settings.plan))

    return at


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("votes", "It is sent WITHOUT noise: the aggregator is trusted to add it."),
        ("rows", "It is sent WITHOUT noise: for features that are public."),
        ("counts", "It is protected by noise that this site adds."),
    ],
)
def test_each_question_is_told_with_what_protects_its_answer(looked, kind, said):
    found = looked(PUBLIC, questions=[QUESTIONS[kind]])
    line = next(line for line in found.lines if line.startswith(f"  {kind}, once at most: "))
    assert line.endswith(said)
    assert found.errors == []


def test_a_question_that_nobody_here_can_answer_is_told(looked, tmp_path):
    found = looked(asked=[{"kind": "loot", "times": 3, "same": {}, "length": 1, "reply": 1}])
    assert any(line.startswith("  loot: cannot be answered here: ") for line in found.lines)
    assert len(found.errors) == 1


def test_what_it_costs_and_what_is_left(looked):
    found = looked()
    assert "what an exchange costs: epsilon 1, delta 0 for one label (replace), by noise of this site" in found.lines
    assert (
        "what an exchange costs: epsilon 1, delta 0 for one party (replace), if the aggregator is honest" in found.lines
    )
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
    asked = {"kind": "counts", "times": 1, "same": {}, "length": 1, "reply": 1, "masked": True}
    found = looked(questions=[QUESTIONS["counts"]], sites=sites, asked=[asked], quorum=1.0)
    [line] = [line for line in found.lines if line.startswith("  counts, once at most: ")]
    assert line.endswith("sent masked: nobody sees it, but the sum of all.")
    assert any(line.startswith("secure sums: of 3 of 3 sites at least, or nothing can be read") for line in found.lines)
    assert any("with the OTHER SITES by telephone" in line for line in found.lines)
    assert any(line.endswith("for one label (replace), by noise of all sites together") for line in found.lines)
    believed = outlook(
        Settings.load(tmp_path / "site.toml"),
        Agreement.load(tmp_path / "plan.json").model_copy(update={"servers": "one_semi_honest"}),
    )
    assert any("a coordinator that follows the protocol does not see it" in line for line in believed.lines)
    assert any("if it cheats it can read this site's part (policy.servers)" in line for line in believed.lines)
    assert not any("with the OTHER SITES by telephone" in line for line in believed.lines)
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
    for said in ("it holds no rows, needs no table", "3 of 3 at least", masks, "with the SITES by telephone", "ombud"):
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


KEY = "ab" * 32
COUNTED = {"kind": "counts", "times": 1, "same": {}, "length": 1, "reply": 1, "masked": True}


@pytest.fixture(params=["one", "one_semi_honest", "two"])
def plan(request):
    sites = [{"name": name} for name in ("north", "south", "west")]
    second = {"second": {"name": "ombud", "masks": KEY}} if request.param == "two" else {}
    known = {"sites": sites, "asked": [COUNTED], "servers": request.param, "quorum": 1.0, "colluding": 0.1}
    return agreement_for(Ed25519PrivateKey.generate(), [], QUESTIONS["counts"], **known, **second)


def test_whom_one_must_believe_is_said_to_all(plan):
    told = [promised(plan), unseen(plan), *for_site(plan, 0.2)]
    assert "1 of 3" in told[0]
    assert "of 3 of 3 sites at least" in told[2]
    assert "policy.colluding: 0.2 may" in told[2]
    for text, servers in {
        "follow the protocol": "one_semi_honest",
        "you and 'ombud' do not put together": "two",
        "sites trust nobody": "one",
    }.items():
        assert (text in told[0]) is (plan.servers == servers)
    assert ("FOLLOWS THE PROTOCOL" in told[2]) is (plan.servers == "one_semi_honest")
    assert ("DO NOT COLLUDE" in told[2]) is (KEY in told[2]) is (plan.servers == "two")
    assert ("nobody sees it" in told[1]) is (plan.servers == "one")
    assert ("OTHER SITES" in " ".join(told)) is compared(plan) is (plan.servers != "one_semi_honest")
