"""`federation privacy`: what each mechanism, and each protocol's noise, costs and promises, by public numbers alone."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import typer
from click.testing import CliRunner

from federation.contract.errors import InputError
from federation.mechanisms.accounting import sensitivity
from federation.mechanisms.bag_sums.calibration import delta, smallest_tau
from federation.mechanisms.bag_sums.design import BagDesign
from federation.mechanisms.counts.calibration import calibrate as calibrate_counts
from federation.mechanisms.counts.dirichlet import MAX_FLOOR
from federation.mechanisms.noise.additive import calibrate
from federation.mechanisms.sums.row_sums import calibrate_row_sums as calibrate_moments
from scenarios.commands.privacy import privacy_app

app = typer.Typer()
app.add_typer(privacy_app, name="privacy")
program = typer.main.get_command(app)
LLP = ("llp", "--n", "25600", "--m", "100", "--k", "256")
PUBLISHED = (*LLP, "--rho", ".1", "--sigma", "1", "--range", "0,1", "--epsilon", "1")
CTG = ("--features", "22", "--queries", "2")


def told(*arguments: str) -> str:
    result = CliRunner().invoke(program, ["privacy", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def recorded(*arguments: str) -> dict:
    return json.loads(told(*arguments, "--json"))


def test_gaussian_prints_the_calibrated_mechanism_pure_ones_need_no_delta_and_all_have_tables() -> None:
    record = recorded("gaussian", "--sensitivity", "0.5", "--dimension", "8", "--epsilon", "2")
    mechanism = calibrate("gaussian", sensitivity=0.5, dimension=8, epsilon=2.0, delta=1e-6)
    assert record["scale"] == mechanism.parameters["scale"]
    assert record["step"] == mechanism.step
    assert record["expected_noise_norm"] == mechanism.expected_noise_norm()
    at_claim = next(row["delta"] for row in record["delta_at"] if row["epsilon"] == 2.0)
    assert 0.99e-6 < at_claim <= 1e-6
    assert recorded("l2-gamma", "--dimension", "3")["mechanism"] == "l2_gamma"
    laplace = recorded("discrete-laplace", "--epsilon", "0.5")
    assert (laplace["mechanism"], laplace["delta"]) == ("discrete_laplace", 0)
    assert laplace["scale"] == pytest.approx(2.0, rel=1e-3)
    for command in ("gaussian", "l2-gamma", "discrete-laplace", "soft-vote", "majority-vote"):
        assert "sensitiv" in told(command)


def test_votes_list_every_sensitivity_and_the_statistic() -> None:
    options = ("--parties", "500", "--classes", "3", "--regularisation", "0.01", "--dimension", "4")
    for command, bound in (("soft-vote", sensitivity.soft_vote), ("majority-vote", sensitivity.majority_vote)):
        published, _, _, statistic = recorded(command, *options)["rows"]
        assert (published["dimension"], statistic["dimension"]) == (12, 8)
        assert published["sensitivity"] == bound("published", regularisation=0.01, parties=500, classes=3)
        assert statistic["sensitivity"] == pytest.approx(2**0.5 / 500)
        assert statistic["pure_noise_norm"] == pytest.approx(8 * 2**0.5 / 500, rel=1e-3)


@pytest.mark.slow
def test_the_exact_delta_and_what_belongs_to_it() -> None:
    record = recorded(*PUBLISHED, "--releases", "3")
    design = BagDesign(25_600, 100, 256, noisy=2560)
    assert record["delta"] == delta(1.0, design, sigma=1.0, label_range=(0, 1))
    assert float(f"{record['delta']:.1e}") == 6.2e-4
    assert record["theorem"] == 1
    assert record["infinite_loss"] == design.noise_free
    costs = {row["releases"]: row["delta"] for row in record["releases"]}
    assert list(costs) == [1, 2, 3, 4, 8, 16]
    assert costs[1] == record["delta"]
    assert costs[16] == pytest.approx(0.07687, abs=5e-6)
    assert sorted(costs.values()) == list(costs.values())
    enough = delta(1.0, design, sigma=record["sigma_for_delta"], label_range=(0, 1))
    assert 0.99e-6 < enough <= 1e-6


def test_the_table_of_label_sums() -> None:
    text = told("llp", "--n", "30", "--m", "3", "--k", "10", "--rho", ".1")
    for shown in (
        "noisy           │ 3  ",  # as a share of a decimal number says
        "delta           │ 0.4947068399",
        "delta is exact; theorem is the published bound.",
        "infinite loss",
        "16       │ 1",
        "No noise is enough",
    ):
        assert shown in text
    stratified = told(*LLP, "--per-bag", "26", "--weights", "signs")
    assert "1.007311" in stratified
    assert "covers other designs" in stratified


@pytest.mark.slow
def test_negative_labels_cost_what_their_width_does() -> None:
    assert recorded(*LLP, "--rho", ".1", "--range", "-3,-2")["delta"] == recorded(*PUBLISHED)["delta"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    x, kind = rng.normal(size=(200, 2)), rng.integers(0, 3, 200)
    y = np.clip(0.5 + 0.1 * x[:, 0] + 0.1 * rng.normal(size=200), 0, 1)
    lines = [f"{a},{b},{'abc'[c]},{label}" for (a, b), c, label in zip(x, kind, y, strict=True)]
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["age,height,kind,weeks", *lines]))
    return path


def test_what_sums_without_noise_reveal(table: Path) -> None:
    arguments = ("lba", str(table), "--label", "weeks", "--range", "0,1", "--k")
    record = recorded(*arguments, "20", "--seen", "3")
    assert record["guarantee"] is None
    assert "must not be published" in record["warning"]
    assert "delta" not in record
    assert (record["n"], record["m"], record["bags_seen"], record["inclusion"]) == (200, 10, 3, 1)
    exposed = (record["per_instance_delta_mean"], record["per_instance_delta_mean_largest"])
    assert 0 < exposed[0] < exposed[1] <= record["per_instance_delta_largest"] <= 1
    assert record["tau_for_a_guarantee"] == pytest.approx(smallest_tau(1.0, 1e-6, label_range=(0, 1)), rel=1e-5)
    text = told(*arguments, "20", "--m", "5")
    assert "NOT A GUARANTEE: these figures depend on the private labels" in text
    assert "bags seen                       │ 5" in text
    assert "9.249" in text  # less, as half of the records are in no bag
    assert recorded(*arguments, "4")["revealed_share"] == 1  # bags no larger than their columns


def test_labels_outside_the_range_are_refused_or_clipped_and_missing_values_refused(tmp_path, table):
    arguments = ("lba", str(table), "--label", "weeks", "--k", "20", "--range", "0,.5")
    assert "NOT A GUARANTEE" in told(*arguments, "--outside", "clip")
    archive = tmp_path / "gaps.npz"
    np.savez(archive, X=np.where(np.eye(80)[:, :2] == 1, np.nan, 0.5), y=np.linspace(0, 1, 80))
    absent = ("lba", str(tmp_path / "none.csv"), "--label", "weeks", "--range", "0,1")
    gaps = ("lba", str(archive), "--range", "0,1")
    for wrong, words in ((arguments, None), (absent, None), (gaps, r"missing|finite")):
        with pytest.raises(InputError, match=words):
            told(*wrong)


def marginals(*arguments: str) -> tuple[dict, dict]:
    """The whole, and its mechanisms by name."""
    found = recorded("error-marginals", *arguments)
    return found, {one["noise"]: one for one in found["mechanisms"]}


def test_rows_take_gaussian_noise_labels_have_the_published_guarantee_and_replaced_rows_more_noise():
    found, by_name = marginals(*CTG, "--rows", "5000")
    assert (found["auto"], found["unit"], found["adjacency"]) == ("gaussian", "row", "add_remove")
    assert by_name["gaussian"]["deviation"] == pytest.approx(24.75, abs=0.01)
    assert by_name["pure"]["scale"] == by_name["published"]["scale"] == 44.0
    assert [by_name[name]["bins"] for name in ("pure", "gaussian", "published")] == [4, 4, 20]
    assert (by_name["pure"]["epsilon"], by_name["pure"]["delta"], by_name["pure"]["epsilon_per_query"]) == (1, 0, 0.5)
    assert by_name["published"]["epsilon"] is None
    assert "a replaced label only" in by_name["published"]["note"]
    _, label = marginals(*CTG, "--protect", "label")
    assert (label["published"]["epsilon"], label["published"]["delta"]) == (1.0, 0.0)
    assert label["published"]["deviation"] == label["pure"]["deviation"]
    _, replaced = marginals(*CTG, "--adjacency", "replace")
    assert replaced["pure"]["scale"] == 2 * label["pure"]["scale"]
    few, by_name = marginals("--features", "2", "--queries", "2", "--delta", "0")
    assert few["auto"] == "pure"
    assert "gaussian" not in by_name


def test_the_table_of_error_marginals() -> None:
    text = told("error-marginals", *CTG, "--epsilon", ".5", "--rows", "1063")
    for shown in (
        "auto        │ gaussian",
        "unit        │ row",
        "adjacency   │ add_remove",
        "published│88   │124.5    │-      │-    │-                │2",
        "published: published error rates protect",
        "Use noise: gaussian",
    ):
        assert shown in text


def mechanisms(*options: str) -> dict[str, dict]:
    return {row["noise"]: row for row in recorded("mean-operator", *options)["mechanisms"]}


def test_every_mechanism_of_a_mean_is_described_by_its_noise_on_the_mean() -> None:
    shape = ("--rows", "1000", "--d", "25")
    found = mechanisms(*shape, "--epsilon", "0.5")
    response = found.pop("randomised_response")
    assert set(found) == {"pure", "laplace", "gaussian", "published_laplace"}
    assert (response["epsilon"], response["delta"], response["loss"]) == (0.5, 0.0, "visible")
    assert response["noise_norm"] == pytest.approx(1 / math.sinh(0.25) / 1000**0.5)
    for kind, row in found.items():
        noise = calibrate_moments(kind, dimension=25, epsilon=0.5, delta=1e-6, rows=1000)
        assert row["mechanism"] == noise.name
        assert row["epsilon"] == noise.epsilon
        assert row["noise_norm"] == pytest.approx(noise.noise_norm() / 1000)
        assert row["deviation"] == pytest.approx(row["noise_norm"] / 5)
        assert row["regularisation"] == pytest.approx(max(1e-4, row["noise_norm"] ** 2 / 2))
    assert found["published_laplace"]["epsilon"] == 2.5
    assert [kind for kind, row in found.items() if row["auto"]] == ["gaussian"]
    without_delta = mechanisms(*shape, "--delta", "0")
    assert "gaussian" not in without_delta
    assert [kind for kind, row in without_delta.items() if row["auto"]] == ["pure"]
    short = mechanisms(*shape, "--delta", "0", "--l1-bound", "1.5")
    assert [kind for kind, row in short.items() if row["auto"]] == ["laplace"]


def test_noise_grows_with_parties_unless_they_share_it() -> None:
    shape = ("--rows", "4000", "--d", "5")
    one, alone, shared = (
        mechanisms(*shape, *more) for more in ((), ("--parties", "64"), ("--parties", "64", "--secure-sum"))
    )
    responses = [found.pop("randomised_response") for found in (one, alone, shared)]
    assert [found["auto"] for found in responses] == [False, False, False]
    assert len({found["noise_norm"] for found in responses}) == 1  # every label has noise of its own
    assert mechanisms(*shape, "--parties", "200")["randomised_response"]["auto"]
    assert mechanisms(*shape, "--parties", "64", "--weight", "0.3")["randomised_response"]["auto"]
    for kind, row in one.items():
        assert alone[kind]["noise_norm"] == pytest.approx(8 * row["noise_norm"])
        together = row["noise_norm"] * (64 / (32 - 7)) ** 0.5  # a quorum of one half, less those that collude
        assert shared[kind]["noise_norm"] == pytest.approx(together, rel=1e-5)


def test_the_table_of_a_mean_marks_the_choice_and_says_when_noise_is_all() -> None:
    text = told("mean-operator", "--rows", "1000", "--d", "5")
    (pure,) = (line for line in text.splitlines() if line.startswith("pure"))
    assert pure.endswith("│yes ")
    assert "longer than any mean" not in text
    assert "longer than any mean" in told("mean-operator", "--rows", "2", "--d", "5")
    shared = told("mean-operator", "--rows", "1000", "--d", "5", "--parties", "8", "--secure-sum")
    assert "at least 3 parties" in shared


FIGURE = ("--counts", "50,50,50,50,800", "--epsilon", ".05", "--delta", ".05")


@pytest.mark.slow
def test_all_mechanisms_of_proportions_at_invented_counts() -> None:
    record = recorded("proportions", *FIGURE)
    assert record["counts"] == [50, 50, 50, 50, 800]
    assert (record["classes"], record["size"], record["recommended"]) == (5, 1000, "gaussian")
    rows = {row["noise"]: row for row in record["rows"]}
    assert len(rows) == 10
    assert (record["rows"][0]["noise"], record["rows"][-1]["noise"]) == ("gaussian", "published_dirichlet")
    assert rows["gaussian"]["l1"] <= 0.030
    assert rows["published_laplace"]["l1"] > 0.16
    assert rows["gaussian"]["parameters"]["scale"] == pytest.approx(7.937, abs=1e-3)
    published = rows["published_dirichlet"]
    assert not published["private"]
    assert "NOT differentially private" in published["note"]
    assert published["delta"] > 0.07


def test_the_choice_from_public_numbers_only() -> None:
    public = ("proportions", "--classes", "5", "--size", "1000")
    record = recorded(*public)
    assert (record["counts"], record["recommended"]) == (None, "pure")
    rows = {row["noise"]: row for row in record["rows"]}
    assert not {"dirichlet_floor", "published_dirichlet"} & set(rows)  # both would need to know the counts
    assert rows["laplace"]["l1"] <= 0.0080
    mechanism = calibrate_counts("auto", classes=5, epsilon=1.0, delta=1e-6)
    assert record["count_deviation"] == pytest.approx(mechanism.covariance(1000)[0, 0] ** 0.5)
    assert "dirichlet_floor" in {row["noise"] for row in recorded(*public, "--floor", "150")["rows"]}


@pytest.mark.slow
def test_tables_of_proportions_mark_the_choice_and_explain_what_is_missing() -> None:
    text = told("proportions", "--counts", "5,95", "--epsilon", ".05", "--delta", ".05")
    assert "recommended     │ gaussian" in text
    assert "Use noise: gaussian" in text
    assert re.search(r"dirichlet_floor.*floor.*7", text)
    assert "published_dirichlet: NOT differentially private" in text
    choice = told("proportions", "--classes", "3", "--size", "500", "--delta", "0")
    assert "recommended     │ pure" in choice
    assert "at equal counts" in choice
    assert "published_dirichlet" not in choice
    assert "more than the bag holds" not in choice
    assert "more than the bag holds" in told("proportions", "--classes", "3", "--size", "100", "--epsilon", ".001")


BAGS = ("llp", "--n", "100", "--m", "5", "--k", "20")
SHARED = (*BAGS, "--rho", ".1")
WEEKS = ("lba", "people.csv", "--label", "weeks", "--range", "0,1")
MARGINALS = ("error-marginals", *CTG)
MEAN = ("mean-operator", "--rows", "10", "--d", "3")
COUNTS = ("proportions", "--counts")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("llp", "--n", "100", "--m", "5", "--k", "30", "--rho", ".1"), "5 bags of 30 need 150 records, got 100"),
        (("llp", "--n", "100", "--m", "5", "--k", "0", "--rho", ".1"), "'--k': 0 is not in the range x>=1"),
        ((*BAGS, "--rho", "0"), r"must lie in \(0, 1\], got 0"),
        ((*BAGS, "--rho", ".001"), "is no row at all"),
        (BAGS, "give --rho, .* or --per-bag"),
        ((*SHARED, "--per-bag", "2"), "and not both"),
        ((*BAGS, "--per-bag", "21"), "per_bag must be an integer from 1 to all 20"),
        ((*SHARED, "--weights", "sign"), "'sign' is not one of"),
        ((*SHARED, "--range", "1,0"), "the lower number first, got '1,0'"),
        ((*SHARED, "--sigma", "0"), "sigma must be a positive"),
        ((*SHARED, "--delta", "0"), "delta must lie strictly"),
        (("lba", "people.csv", "--label", "weeks"), "--range LOW,HIGH must declare the public range"),
        ((*WEEKS, "--k", "201"), "need 201 rows, got 200"),
        ((*WEEKS, "--label", "week"), "week"),
        ((*WEEKS, "--label", "kind"), "kind"),
        (("lba", "people.csv", "--range", "0,1"), "must name the label column"),
        ((*WEEKS, "--outside", "keep"), "'keep' is not one of 'refuse', 'clip'"),
        ((*MARGINALS, "--epsilon", "0"), "epsilon must be a positive"),
        ((*MARGINALS, "--protect", "party"), "'--protect': 'party' is not one of 'row', 'label'"),
        (
            (*MARGINALS, "--protect", "label", "--adjacency", "add_remove"),
            "label by replace .* got label by add_remove",
        ),
        ((*MARGINALS, "--adjacency", "swap"), "'swap' is not one of 'add_remove', 'replace'"),
        ((*MEAN, "--l1-bound", "-1"), "l1_bound must be"),
        ((*MEAN, "--parties", "11"), "--parties must be"),
        (("proportions", "--classes", "5"), "give --counts N,N,... to compare at invented counts, or --classes and"),
        (("proportions", "--classes", "1", "--size", "5"), "'--classes': 1 is not in the range x>=2"),
        (("proportions", "--classes", "2", "--size", "0"), "'--size': 0 is not in the range 1<=x<=4503599627370496"),
        ((*COUNTS, "1,2", "--size", "3"), "--counts stands alone"),
        ((*COUNTS, "1,b"), "--counts must be two or more whole numbers .* with commas between, .* got '1,b'"),
        ((*COUNTS, "7"), "--counts must be two or more whole numbers"),
        ((*COUNTS, "7,-1"), "whole numbers from 0 to 2.52 .*; got '7,-1'"),
        ((*COUNTS, "0,0"), "counts must not all be zero"),
        ((*COUNTS, "3,4", "--delta", "1"), r"delta must lie in \[0, 1\)"),
        ((*COUNTS, "3,4", "--floor", "0"), f"'--floor'.*0.*1.*{MAX_FLOOR}"),
        ((*COUNTS, "3,4", "--pseudo-count", "1000001"), f"'--pseudo-count'.*1000001.*1.*{MAX_FLOOR}"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(refused, table, arguments, message, monkeypatch) -> None:
    monkeypatch.chdir(table.parent)
    assert re.search(message, refused("privacy", *arguments))
