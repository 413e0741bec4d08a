"""What a second server is told of a plan, and what keeps it from serving one."""

import pytest
from support.second_folders import second_folder

from federation.signed_messages.agreement import Agreement
from federation.signed_messages.keys import new_site_key, save_key
from parties.site.settings import SecondSettings
from scenarios.deployment.site_texts import outlook_of_second


@pytest.fixture
def looked(tmp_path):
    path = second_folder(tmp_path)

    def at(old="", new="", **changed):
        path.write_text(path.read_text().replace(old, new))
        settings = SecondSettings.load(path)
        return outlook_of_second(settings, Agreement.load(settings.plan).model_copy(update=changed))

    return at


def test_it_holds_no_rows_and_is_told_what_rests_on_it(looked, tmp_path):
    found = looked()
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
def test_each_objection_is_a_sentence(looked, old, new, changed, said):
    found = looked(old, new, **changed)
    assert said in " ".join(found.errors)
    assert found.lines[-1] == "NOT ready"


def test_a_plan_with_keys_of_somebody_else_is_none_to_serve(looked, tmp_path):
    key = tmp_path / "ombud" / "key"
    key.unlink()
    save_key(key, new_site_key())
    errors = " ".join(looked().errors)
    assert "the plan's key for 'ombud' is" in errors
    assert "the key for masks that the plan has of 'ombud' is not this server's" in errors
