"""A scenario becomes a plan that sites can agree to, over a file of public rows, or sentences say what must change."""

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from support.letter_sites import CLOSING, scenario, write_public
from support.refusals import refused

from aggregator.contract.registry import protocol_names
from federation.contract.errors import InputError
from federation.signed_messages.agreement import Agreement
from scenarios.data.hashing import Hashing
from scenarios.deployment.plans import Arrangements, begun, deployment, feature_columns, public_rows, sha256
from scenarios.settings.schema import resolve

REAL = {"classes": None, "range": [0, 1]}
SIZES = {"weighted_lba": {"size": 30}, "noisy_weighted_llp": {"size": 30}}
LABELS = {"label_sums": REAL, "private_labels": REAL, "weighted_lba": REAL, "noisy_weighted_llp": REAL}


SECURE = {"kind": "mean_operator", "options": {"trust": "secure"}}
CSV = "age,city,ill,day\n30,Rome,yes,mon\n,Oslo,no,tue\n52,Rome,yes,wed\n"


def plan(folder, rows=(60, 67), bags=None, second=None, sites=("north", "south", "west"), overrides=(), **changed):
    known = Arrangements("link:1", "root", "key", sites, CLOSING, rows, bags, second)
    return deployment(resolve(scenario(**changed), overrides), known, write_public(folder / "public.csv"))


@pytest.mark.parametrize("kind", protocol_names())
def test_every_protocol_can_be_agreed_on(tmp_path, kind):
    found = plan(tmp_path, kind=kind, options=SIZES.get(kind, {}), data=LABELS.get(kind, {}))
    agreement = found.agreement
    assert agreement.protocol == kind
    assert agreement.asked
    assert agreement.promises
    # What was agreed on is what would be asked at any other time, and is the same from a file.
    assert begun(found.plan, tmp_path)[0] == agreement.asked
    stored = json.dumps(agreement.model_dump(mode="json"))
    assert Agreement.model_validate_json(stored).digest == agreement.digest


EARLIER = json.loads(
    Path(__file__).with_name("agreements.json").read_text()
)  # as be48bbbd made them, but for three options since removed
AGREED = {
    "soft_vote": {},
    "class_ratio of persons in bags": {
        "kind": "class_ratio", "bags": 4, "data": {"person": "p"}, "parties": {"bags": {"by": "q"}},
    },
    "mean_operator with two servers": {
        "kind": "mean_operator", "options": {"protect": "row", "trust": "secure"}, "servers": "two", "second": "ombud",
        "parties": {"quorum": 1.0, "colluding": 0.2},
    },
    "label_sums": {"kind": "label_sums", "data": REAL, "privacy": {"budget": {"epsilon": 3, "delta": 1e-4}}},
}  # fmt: skip


@pytest.mark.parametrize("name", AGREED)
def test_sites_have_approved_the_same_bytes_since_earlier_versions(tmp_path, name):
    """Without digests of arrays, whose last digits differ between processors."""
    earlier = json.dumps(EARLIER[name], sort_keys=True, separators=(",", ":")).encode()
    arrays = re.compile(rb"sha256:[0-9a-f]{64}")
    assert arrays.sub(b"", plan(tmp_path, **AGREED[name]).agreement.canonical()) == arrays.sub(b"", earlier)


def test_what_public_rows_tell_is_in_the_agreement_and_the_plan_is_for_real_parties(tmp_path):
    found = plan(tmp_path).agreement
    assert [(one.name, one.text) for one in found.columns] == [("p", False), ("q", False), ("r", False)]
    assert (found.label.name, found.label.classes) == ("ill", ("no", "yes"))
    assert (found.rows, found.public.rows, found.quorum, found.missing) == ((60, 67), 400, 0.6, True)
    assert [site.key for site in found.sites] == ["", "", ""]
    assert not found.sealed
    found = plan(tmp_path, privacy={"budget": {"epsilon": 3, "delta": 1e-4}}).plan
    run, public = found.run, found.public
    assert (run.simulation, run.noise_seed, public.draws, run.individual) == (False, None, 1, 0)
    assert (found.terms.parties, run.parties_per_node, run.in_letters) == (3, 1, True)
    assert (public.smallest_bag, public.largest_bag, public.rows) == (60, 67, None)
    assert found.releases.budget == {"epsilon": 3.0, "delta": 1e-4}
    assert [variant.kind for variant in found.variants] == ["soft_vote"]  # and no baseline
    assert plan(tmp_path, rows=(60, 60)).plan.public.rows == 180
    assert plan(tmp_path, rows=None, parties={"rows": 40}).agreement.rows == (40, 40)  # those of the scenario


@pytest.mark.parametrize(
    ("kind", "options", "public", "promised"),
    [
        ("soft_vote", {}, False, ("party", True)),
        ("parameter_average", {}, False, ("party", True)),
        ("class_ratio", {}, True, ("label", False)),
        ("mean_operator", {}, True, ("label", False)),
        ("mean_operator", {"protect": "label"}, True, ("label", False)),
        ("mean_operator", {"protect": "row"}, False, ("row", False)),
        ("error_marginals", {"protect": "row"}, False, ("row", False)),
        ("private_labels", {}, True, ("label", False)),
    ],
)
def test_the_agreement_says_who_makes_the_noise_and_whether_features_are_taken_as_public(
    tmp_path, kind, options, public, promised
):
    found = plan(tmp_path, kind=kind, options=options, data=LABELS.get(kind, {})).agreement
    assert found.public_features is public
    [promise] = found.promises
    assert (str(promise.unit), promise.trusted, promise.epsilon) == (*promised, 1.0)


def test_all_rounds_of_a_protocol_are_agreed_on_and_columns_that_say_whose_a_row_is_are_no_features(tmp_path):
    [asked] = plan(tmp_path, kind="error_marginals", options={"rounds": 3}).agreement.asked
    assert asked.times == 3
    assert not any(name.startswith("hypothesis") for name in asked.same)
    found = plan(tmp_path, bags=4, kind="class_ratio", data={"person": "p"}, parties={"bags": {"by": "q"}}).agreement
    assert [one.name for one in found.columns] == ["r"]
    assert (found.person, found.rows_per_person, found.bags.column, found.bags.most) == ("p", 1, "q", 4)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"data": {"auxiliary": 0.5}}, r"data\.auxiliary"),
        ({"data": {"classes": None}}, r"data\.classes"),
        ({"data": {"source": "digits", "label": None}}, r"data\.label"),
        ({"data": {"positive": ["yes"]}}, r"data\.positive.*sites"),
        ({"kind": "label_sums", "data": {"classes": None, "source": "diabetes"}}, r"data\.range"),
        ({"kind": "class_ratio", "parties": {"bags": 2, "rows": 60}}, r"parties\.bags.*2"),
        ({"kind": "class_ratio", "parties": {"bags": {"by": "q"}}}, r"parties\.bags.*--bags"),
        ({"kind": "class_ratio", "parties": {"bags": {"by": "q"}, "common_bags": True}}, r"parties\.common_bags"),
        ({"parties": {"count": [3, 5]}}, r"parties\.count"),
        ({"options": {"noise": ["pure", "gaussian"]}}, r"protocols\.noise"),
        ({"privacy": {"epsilon": [1, 2]}}, r"privacy\.epsilon.*epsilon"),
        ({**SECURE, "servers": "two"}, r"servers.*two.*--second.*NAME"),
        ({**SECURE, "second": "ombud"}, r"servers.*one.*--second.*servers.*two"),
        ({**SECURE, "servers": "two", "second": "South"}, r"--second.*South"),
        ({**SECURE, "parties": {"quorum": 1.0}, "sites": ("north", "south")}, r"trust.*secure.*a.*3.*2"),
        ({**SECURE, "parties": {"quorum": 0.3}}, r"parties\.quorum.*parties\.colluding"),
        ({"rows": None}, r"parties\.rows.*--rows"),
        ({"options": {"noise": "off"}}, None),
        ({"kind": "class_ratio", "options": {"noise": "dirichlet_floor", "floor": 20}}, None),
        ({"data": {"time": "q"}, "overrides": ["trials.periods=4"]}, r"data\.time.*periods"),
        (
            {"overrides": ["protocols=[{kind: soft_vote}, {kind: mean_operator}]"], "sites": ("north",)},
            r"2.*soft_vote.*mean_operator",
        ),
    ],
)
def test_what_cannot_be_asked_of_real_sites_is_told_with_what_to_change(tmp_path, changed, told):
    refused(told, plan, tmp_path, **changed)


@pytest.mark.parametrize(
    ("servers", "second"), [("one", None), ("one_semi_honest", None), ("two", "ombud")], ids=lambda known: str(known)
)
def test_sites_and_ledger_are_told_who_adds_up(tmp_path, servers, second):
    known = {"options": {"protect": "row", "trust": "secure"}, "servers": servers, "second": second}
    found = plan(tmp_path, kind="mean_operator", **known)
    assert found.agreement.servers == found.plan.terms.servers == servers
    assert [one.name for one in found.agreement.members[3:]] == [second][: servers == "two"]
    assert any("parties.quorum" in one for one in found.remarks) is (servers != "two")  # who is late ends no sum


def test_all_that_must_be_changed_is_told_at_once(tmp_path):
    with pytest.raises(InputError) as told:
        plan(tmp_path, rows=None, data={"auxiliary": 100, "classes": None}, privacy={"epsilon": [1, 2]})
    assert [line.split(":")[0] for line in str(told.value).splitlines()] == [
        "privacy.epsilon",
        "data.auxiliary",
        "data.classes",
        "parties.rows",
    ]


def secure(folder, quorum=1.0, kind="mean_operator", data=()):
    """What a scenario with secure sums of rows is between three sites."""
    options = {"protect": "row", "trust": "secure"}
    return plan(folder, kind=kind, options=options, parties={"quorum": quorum}, data=data)


def test_sums_of_shares_are_asked_for_as_such_and_a_quorum_that_they_cannot_use_is_told(tmp_path):
    found = secure(tmp_path)
    assert [asked.masked for asked in found.agreement.asked] == [True]
    assert found.agreement.secure
    assert [(one.unit, one.trusted) for one in found.agreement.promises] == [("row", False)]
    assert not any("parties.quorum" in remark for remark in found.remarks)
    assert secure(tmp_path, kind="label_sums", data=REAL).agreement.secure
    told = secure(tmp_path, quorum=0.6).remarks
    assert any("by parties.quorum 1 of 3 sites may stay away" in one for one in told)
    assert any("ends when more than 0 do; raise parties.quorum to 1: the noise" in one for one in told)


def test_words_of_a_column_are_hashed_by_the_sites_themselves(tmp_path):
    features = [{"hash": {"column": "p", "bits": 2}}, {"project": 3}, "constant", "unit_norm"]
    found = plan(tmp_path, data={"features": features})
    names = Hashing(2, "p").names
    assert [(one.name, one.text) for one in found.agreement.columns] == [
        ("q", False),
        ("r", False),
        *((n, False) for n in names),
    ]
    assert found.plan.task.stages == ({"project": {"seed": 1, "dimensions": 3}}, "constant", "unit_norm")
    assert begun(found.plan, tmp_path)[0] == found.agreement.asked


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "public.csv"
    path.write_text(CSV)
    return path


@pytest.fixture
def npz(tmp_path):
    path = tmp_path / "public.npz"
    np.savez(path, X=np.arange(6.0).reshape(3, 2), feature_names=np.array(["age", "weight"]))
    return path


def test_features_are_all_columns_but_the_named_ones_and_words_are_hashed_into_numbers_behind_them(csv):
    found = feature_columns(csv, ["ill", "day", "who"])
    assert [(one.name, one.text) for one in found] == [("age", False), ("city", True)]
    refused(None, feature_columns, csv, ["age", "city", "ill", "day"])
    stage = Hashing(3, "city")
    found = feature_columns(csv, ["ill", "day"], [stage])
    assert [(one.name, one.text) for one in found] == [("age", False), *((name, False) for name in stage.names)]
    names = [one.name for one in found]
    rows = public_rows(csv.name, sha256(csv), names, [], True, str(csv.parent)).rows
    assert np.abs(rows[:, 1:]).sum(axis=1).tolist() == [1, 1, 1]
    assert rows[0, 1:].tolist() == rows[2, 1:].tolist()
    refused("town", feature_columns, csv, ["ill"], [Hashing(3, "town")])


def test_columns_of_arrays_have_the_names_that_the_file_gives_them(npz):
    assert [one.name for one in feature_columns(npz, ["weight"])] == ["age"]
    rows = public_rows(npz.name, sha256(npz), ["age", "weight"], [], False, str(npz.parent))
    np.testing.assert_array_equal(rows.rows, np.arange(6.0).reshape(3, 2))
    np.savez(npz, X=np.zeros((3, 2)))
    refused("feature_names", feature_columns, npz, [])


def test_the_rows_are_those_of_the_file_without_its_labels_and_of_no_file_that_was_changed(csv):
    rows = public_rows(csv.name, sha256(csv), ["age", "city"], [1], True, str(csv.parent))
    assert rows.rows.shape == (3, 2)
    assert np.isnan(rows.rows[1, 0])
    assert rows.rows[0, 1] == rows.rows[2, 1] != rows.rows[1, 1]
    assert (rows.columns, rows.text_columns) == (("age", "city"), (1,))
    with pytest.raises(InputError, match="age"):  # where nothing fills in missing cells
        public_rows(csv.name, sha256(csv), ["age"], [], False, str(csv.parent))
    digest = sha256(csv)
    assert digest == hashlib.sha256(CSV.encode()).hexdigest()
    csv.write_text(CSV.replace("30", "31"))
    refused(None, public_rows, csv.name, digest, ["age"], [], True, str(csv.parent))
    csv.unlink()
    refused(None, public_rows, csv.name, digest, ["age"], [], True, str(csv.parent))


def test_sparse_public_rows_are_hashed(tmp_path):
    path, stage = tmp_path / "public.svm", Hashing(3)
    path.write_text("1 1:2 3000000:1\n0 2:4\n")
    names = [one.name for one in feature_columns(path, ["y"], [stage])]
    assert names == [*stage.names]
    rows = public_rows(path.name, sha256(path), names, [], False, str(tmp_path)).rows
    assert np.abs(rows).sum(axis=1).tolist() == [3, 4]
