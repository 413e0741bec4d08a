"""A first scenario: what it says, that it is one, and that it holds no figure of the data."""

import re

import numpy as np
import pytest
from support.refusals import refused

from scenarios.data.profile import profile
from scenarios.settings.draft import Wish, numbers
from scenarios.settings.draft import draft as written
from scenarios.settings.loader import parse
from scenarios.settings.schema import resolve

HEAD = "age,dose,site,visit,ill\n"
WHY = "chosen for a test"


def draft(found, wish, protocols=({"kind": "soft_vote"},)):
    return written(found, wish, protocols, WHY)


@pytest.fixture
def own(tmp_path):
    random = np.random.default_rng(1)
    lines = [
        f"{'' if i % 9 == 0 else f'{random.normal():.3f}'},{random.normal():.3f},{'AB'[i % 2]},"
        f"2001-02-{i % 28 + 1:02d},{('no', 'yes', 'no')[i % 3]}\n"
        for i in range(137)
    ]
    path = tmp_path / "own.csv"
    path.write_text(HEAD + "".join(lines))
    return profile(path)


def wish(**changes):
    return Wish(**{"label": "ill", "protect": "party", "trust": "aggregator", "source": "own.csv", **changes})


def test_it_reads_back_as_what_it_says_and_resolves_with_the_protocols_that_it_is_given_and_why(own, tmp_path):
    made = draft(own, wish())
    text = made.to_yaml("first.yaml", "init")
    said, _ = parse(text, "first.yaml")
    assert said == made.plain
    (tmp_path / "first.yaml").write_text(text)
    found = resolve(tmp_path / "first.yaml")
    assert found.data.source == str(own.path)
    kinds = ["soft_vote", "pooled", "individual", "constant", "noise_free"]
    assert [entry.kind for entry in found.protocols] == kinds
    assert found.data.drop == ("visit",)
    lines = draft(own, wish(group="site")).to_yaml("first.yaml", "init").splitlines()
    assert max(map(len, lines)) <= 120
    for key in ("  source", "  label", "  auxiliary", "  drop", "parties", "protocols", "privacy", "trials"):
        at = next(i for i, line in enumerate(lines) if line.startswith(f"{key}:"))
        assert lines[at - 1].strip().startswith("# ")
    made = draft(own, wish(protect="row"), [{"kind": "mean_operator", "protect": "row"}, {"kind": "error_marginals"}])
    assert [one["kind"] for one in made.plain["protocols"]][:2] == ["mean_operator", "error_marginals"]
    assert "# Chosen for a test." in made.to_yaml("x.yaml", "advise")
    assert "written by `federation advise`" in " ".join(made.to_yaml("x.yaml", "advise").replace("# ", "").split())


def test_no_figure_of_the_rows_is_in_the_file_but_in_the_remarks(own):
    made = draft(own, wish(parties=8))
    numbers = set(re.findall(r"\d+(?:\.\d+)?", made.to_yaml("first.yaml", "init")))
    assert numbers == {"0.25", "2", "8", "1.0", "3.0", "10.0", "5"}  # 2 classes
    assert made.remarks == (
        "classes of ill: no 66.4%, yes 33.6%",
        "missing cells, which the stage impute fills in: age 16",
    )


def test_the_public_numbers_of_a_file_are_those_that_protocols_are_ranked_by(own):
    changes = {"label": "dose", "label_range": (-9.0, 9.0), "protect": "label", "trust": "none"}
    found = [numbers(own, wish(**changes, group="site")), numbers(own, wish(**changes, parties=7))]
    assert [(one.classes, one.parties, one.rows, one.features) for one in found] == [
        (None, 2, 82, 3), (None, 7, 82, 5),  # age, classes of illness; with sites as features two more
    ]  # fmt: skip
    classes = numbers(own, wish(), profile(own.path))
    assert (classes.classes, classes.public_rows) == (2, 137)
    assert numbers(own, wish(positive=["yes"])).public_rows == 27


def test_rare_classes_and_whole_numbers_that_no_two_rows_share_are_told(tmp_path):
    path = tmp_path / "rare.csv"
    path.write_text("x,y\n" + "".join(f"{i / 7},{'odd' if i % 50 == 0 else 'usual'}\n" for i in range(200)))
    told = draft(profile(path), wish(label="y")).remarks[1]
    assert told == "rare: odd; compare every accuracy with that of `constant`"
    path = tmp_path / "serial.csv"
    words = "whole numbers that no two rows share: serial. One that is an identifier belongs in drop, or in person"
    for rows, step, told in ((60, 7, True), (19, 7, False), (60, 0, False)):
        lines = (f"{1000 + step * i},{i % 5},{'yes' if i % 3 else 'no'}\n" for i in range(rows))
        path.write_text("serial,age,y\n" + "".join(lines))
        made = draft(profile(path), wish(label="y", parties=2))
        assert any(words in remark for remark in made.remarks) is told
        text = " ".join(made.to_yaml("x.yaml", "init").replace("# ", "").split())
        assert (words in text) is told
        assert "serial" not in made.plain["data"].get("drop", ()) or not told


def test_impute_goes_before_the_features_of_a_protocol_that_lacks_it(own, monkeypatch):
    for protect, wanted in (("row", ["scale", "unit_norm"]), ("label", ["impute", "unit_norm"])):
        monkeypatch.setattr("scenarios.settings.draft.wanted_features", lambda kinds, stages=wanted: stages)
        data = draft(own, wish(protect=protect)).plain["data"]
        assert data.get("features") == (None if "impute" in wanted else ["impute", *wanted])


def test_parties_that_nobody_counted(own):
    for changes, parties in (
        ({}, 13),  # six private rows each
        ({"public": "public.csv"}, 18),
        ({"protect": "label"}, 1),
        ({"protect": "label", "trust": "none"}, 10),
        ({"protect": "row", "trust": "none", "parties": 4}, 4),
    ):
        made = draft(own, wish(**changes)).plain
        assert made["parties"] == {"count": parties}
        assert made["data"]["auxiliary"] == changes.get("public", 0.25)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"label": "visit"}, r"--label.*visit"),
        ({"label": "age"}, r"--label.*16.*137.*age"),
        ({"label": "dose"}, r"--range.*dose.*1"),
        ({"group": "age"}, r"--group.*age.*16"),
        ({"group": "home"}, r"--group.*home"),
        ({"protect": "person"}, r"--protect.*--person"),
    ],
)
def test_what_cannot_be_is_told(own, changes, part):
    refused(part, draft, own, wish(**changes))


def comments(path, *more):
    rows = [[f"a song number {i}", "yes" if i % 3 else "no", *(str(i % 7) for _ in more)] for i in range(90)]
    path.write_text("\n".join(map(",".join, [["said", "y", *more], *rows])))
    return profile(path)


def test_the_words_of_free_text_are_hashed_where_there_is_nothing_else_and_left_out_elsewhere(tmp_path):
    alone = comments(tmp_path / "alone.csv")
    made = draft(alone, wish(label="y", source="alone.csv"))
    usual = ["impute", "scale", {"whiten": "auto"}, "constant", "unit_norm"]
    assert made.plain["data"]["features"] == [{"hash": {"column": "said", "bits": 10}}, *usual]
    assert "drop" not in made.plain["data"]
    (tmp_path / "first.yaml").write_text(made.to_yaml("first.yaml", "init"))
    assert "# The words of each text, hashed into columns of numbers" in (tmp_path / "first.yaml").read_text()
    assert resolve(tmp_path / "first.yaml").data.features[0] == {"hash": {"column": "said", "bits": 10}}
    assert numbers(alone, wish(label="y")).features == 1024
    made = draft(comments(tmp_path / "more.csv", "age"), wish(label="y"))
    assert made.plain["data"]["drop"] == ["said"]
    text = " ".join(made.to_yaml("first.yaml", "init").replace("#", "").split())
    assert "said (free text, whose words the stage hash of the features can use)" in text
