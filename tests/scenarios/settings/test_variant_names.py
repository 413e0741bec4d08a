"""What variants are called: names of their own, all different, fit for files, and without effect on any result."""

import pytest
from support.small_runs import document

from federation.contract.errors import InputError
from scenarios.runs.runner import run
from scenarios.settings.schema import resolve
from scenarios.settings.sweep import variants

GAUSSIAN = {"kind": "soft_vote", "noise": "gaussian"}


def scenario(*protocols):
    return document(protocols=list(protocols))


def test_a_name_stands_in_place_of_the_automatic_one():
    entries = [{"kind": "soft_vote"}, {**GAUSSIAN, "name": "ours"}]
    found = variants(resolve(scenario(*entries)))
    assert [(one.name, one.key) for one in found] == [("soft_vote", "soft_vote"), ("ours", "soft_vote-gaussian")]
    swept = {"kind": "soft_vote", "name": "ours", "noise": ["pure", "gaussian"], "student": False}
    assert [one.name for one in variants(resolve(scenario(swept)))] == ["ours", "ours-gaussian"]
    assert [one.default for one in variants(resolve(scenario({"kind": "soft_vote", "name": "ours"})))] == [True]


def test_a_name_is_kept_in_the_file_and_comes_back():
    made = resolve(scenario({**GAUSSIAN, "name": "ours"}))
    assert made.to_plain()["protocols"][0]["name"] == "ours"
    assert resolve(made.to_plain()) == made
    assert "name" not in resolve(scenario(GAUSSIAN)).to_plain()["protocols"][0]


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([{**GAUSSIAN, "name": "a/b"}], "name: must consist of letters, digits, '-', '_' and '.'"),
        ([{**GAUSSIAN, "name": ".."}], "name: must consist of letters"),
        ([{**GAUSSIAN, "name": ""}], "name: must"),
        ([{**GAUSSIAN, "name": 7}], "name: must"),
        ([{**GAUSSIAN, "name": "default"}], "name: must not be 'default', which is taken; choose another"),
        ([{**GAUSSIAN, "name": "pooled"}], "name: must not be 'pooled', which is taken"),
        ([{**GAUSSIAN, "name": "x" * 201}], "a name of 201 letters, allowed are 200"),
        (
            [{**GAUSSIAN, "name": "Ours"}, {"kind": "soft_vote", "name": "ours"}],
            "entries 0 and 1 (from 0) both call a variant 'ours'; rename either",
        ),
        (
            [{"kind": "soft_vote"}, {"kind": "soft_vote", "name": "again"}],
            "entries 0 and 1 (from 0) both ask for 'soft_vote'; remove one",
        ),
        ([{"kind": "soft_vote"}, {"kind": "pooled", "name": "all"}], "protocols.1.name: unknown key; allowed: kind"),
    ],
)
def test_a_name_that_no_file_or_no_other_may_have_is_refused(entries, said):
    with pytest.raises(InputError) as caught:
        resolve(scenario(*entries))
    assert said in str(caught.value)


def test_what_variants_are_called_changes_nothing_else(tmp_path):
    """Also not the noise of the aggregator, which is drawn under the automatic name."""
    small = {"trials": {"splits": 1, "noise": 2}, "parties": {"count": 10, "rows": 5}}
    plain, named = (
        run(document(protocols=[{"kind": "soft_vote"}, entry], **small), out=tmp_path / folder, keep_models=True)
        for folder, entry in (("plain", GAUSSIAN), ("named", {**GAUSSIAN, "name": "ours"}))
    )
    renamed = [row | {"variant": row["variant"].replace("soft_vote-gaussian", "ours")} for row in plain.rows]
    assert named.rows == renamed
    assert {path.name for path in (tmp_path / "named/models").iterdir()} == {"soft_vote", "ours"}
    assert named.model("ours", epsilon=30.0) is not None
    page = (tmp_path / "named/report.html").read_text()
    assert ">ours<" in page
    assert "gaussian" not in page.split('id="run-1-guarantees"')[0]
