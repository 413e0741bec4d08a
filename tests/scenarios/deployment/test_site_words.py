"""What a plan means for a site, in words of people."""

import pytest
from support.questions import QUESTIONS
from support.site_folders import site_folder

from federation.signed_messages.agreement import Agreement
from federation.signed_messages.keys import new_site_key, public_text, sums_key
from parties.site.settings import Settings
from scenarios.deployment.site_texts import outlook

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
