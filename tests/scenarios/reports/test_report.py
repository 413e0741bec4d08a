"""The page: complete, self-contained, escaped, the same for equal artefacts; and damaged artefacts are refused."""

import html
import re

import pytest
from support.finished_runs import VALUES, edited, renamed, rewrite
from support.html_page import Page
from support.refusals import refused

from federation.contract.errors import InputError
from federation.contract.guarantee import NoGuarantee
from scenarios.commands.report import report_command
from scenarios.data.catalogue import citations
from scenarios.reports.guarantee_page import GUARANTEE
from scenarios.reports.report import write_report
from scenarios.scores.results import COLUMNS, read_results, write_results

HOSTILE = "<script>alert(1)</script>\"'&{{7*7}}<img src=x onerror=alert(1)>"
PUBLISHED = VALUES | {"soft_vote-published": (0.9, 0.9, 0.9)}


@pytest.fixture(autouse=True)
def _empty_charts(request, monkeypatch):
    """Charts are empty, as drawing them takes longer than all else, unless a test asks for `drawn` ones."""
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr("scenarios.reports.figures._drawn", lambda *_: '<svg class="chart"></svg>')


@pytest.fixture
def drawn():
    """Asks for charts that are drawn."""


def page(*directories, to=None):
    path = to or directories[0] / "report.html"
    assert write_report(directories, path) == path
    return Page(path.read_text(encoding="utf-8"))


def in_page(*directories, parts=(), absent=(), to=None):
    """Assert that the page of these directories has these parts and none of the absent ones."""
    text = page(*directories, to=to).text
    assert [part for part in parts if part not in text] == []
    assert [part for part in absent if part in text] == []


def test_it_says_what_was_reached_who_is_protected_and_what_it_cost(make_run):
    in_page(make_run(), absent=["NON-PRIVATE. Noise is off", "Incomplete"], parts=[
        "Means are over 6 releases at each ε (3 splits of the data).",
        "What they are worth is not said: there is no baseline constant beside them.",
        "Protected is all data of one party",
        "2.72 at ε = 1",
        "0.700 ± 0.014",  # the squares of 6 values sum to .001
        "0.675 to 0.725",  # t(2) = 4.3027 times .01 / sqrt(3)
        "Unit: party. Adjacency: replace. Mechanism: l2_gamma.",
        "a premise (enforced)",
        "(ε = 0.1) rounded for 0.1 (declared)",
        "Verified at run time: votes are one-hot.",
        "ε = 22.2, δ = 0 for one party (replace), 6 releases; the budget of a single release is ε = 10, δ = 1e-05",
        "parties and aggregator1.25208",
        "1,352",
        "Every party answered.",
        "python 3.11.7",
        "name: digits-vote",
    ])  # fmt: skip


def test_errors_of_any_magnitude_are_read_with_less_being_better(make_run):
    squared = {"soft_vote": (2913.0, 130.5, 127.8), "soft_vote-gaussian": (125.0, 130.0, 130.0)}
    ratios = {"soft_vote": (0.3, 0.2, 0.1), "soft_vote-gaussian": (0.2, 0.2, 0.2)}
    for metric, values, *parts in (
        ("mse", squared, "Mean squared error (lower is better) Mean squared error over ε", "2913 ± 02913 to 2913"),
        ("l1", ratios, "L1 error (lower is better) L1 error over ε: mean over releases", "0.300 ± 0.014"),
    ):
        run = renamed(make_run(metric, values=values), metric, lambda line: "individual" not in line)
        in_page(run, parts=parts, absent=["accurac"])
    in_page(renamed(make_run(), "auc"), parts=["AUC"], absent=["Auc"])


def test_nothing_is_fetched_figures_are_inside_and_equal_artefacts_give_equal_pages(make_run, drawn):
    directory = make_run()
    found = page(directory)
    before = (directory / "report.html").read_bytes()
    assert write_report([directory], directory / "report.html").read_bytes() == before
    assert all(link.startswith("#") for link in found.links)
    assert found.charts == 1
    assert not {"script", "link", "iframe", "object", "img", "image", "foreignobject"} & set(found.tags)


def test_hostile_names_are_text(make_run, drawn):
    directory = make_run(
        scenario=HOSTILE,
        values={"soft_vote": VALUES["soft_vote"], HOSTILE: VALUES["soft_vote"]},
        settings=({HOSTILE: HOSTILE},),
        text=HOSTILE,
        failures={HOSTILE: 3},
        versions={HOSTILE: HOSTILE},
        engine=HOSTILE,
    )
    found = page(directory)
    assert not {"script"} & set(found.tags)
    assert all(link.startswith("#") for link in found.links)
    assert found.text.count("<script>alert(1)</script>") > 10
    source = (directory / "report.html").read_text()
    assert "<script" not in source
    assert html.escape("{{7*7}}") in source


def test_noise_off_and_a_run_without_any_guarantee_are_told(make_run):
    off = make_run("off", values=VALUES | {"soft_vote-off": (0.9, 0.9, 0.9)}, non_private=True)
    in_page(off, parts=["NON-PRIVATE. Noise is off", "NON-PRIVATE: noise is off."])
    directory = make_run()
    rewrite(directory, lambda line: ",inf," in line)
    (directory / "ledger.json").write_text('{"worlds": []}')
    in_page(directory, parts=["No variant of this run has a guarantee.", "Nobody is protected"])


def test_it_says_once_how_defaults_were_chosen(make_run):
    rules = [{"protocol": "soft_vote", "default": "noise: pure", "rule": "a < b", "validated": "digits: .29"}]
    text = page(make_run(defaults=rules)).text
    assert text.count("How defaults were chosen") == 1
    assert "soft_votenoise: purea < bdigits: .29" in text
    assert "How defaults were chosen" not in page(make_run("before it was recorded")).text
    refused(None, page, make_run("damaged", defaults=[{"protocol": "soft_vote"}]))


def test_an_interrupted_run_and_one_with_a_failed_variant_say_so(make_run):
    directory = make_run(status="interrupted", worlds={"finished": 1, "all": 3}, failures={"ValueError": 4})
    told = ["this run is interrupted; 1 of 3 worlds are finished", "ValueError4"]
    in_page(directory, parts=told, absent=["Every party answered"])
    failed = {"variant": "soft_vote-gaussian", "world": "split 1", "cause": "no <room>"}
    text = page(make_run("failed", status="failed", failed_variants=[failed])).text
    assert re.search(r"soft_vote.*1.*results.*no", text)
    assert "worlds are finished" not in text


def test_settings_of_a_sweep_are_told_one_by_one_and_variants_tabulated_over_a_swept_text_in_percent(make_run):
    found = page(make_run(settings=({"parties.count": "10"}, {"parties.count": "100"})))
    assert "parties.count = 100, ε = 10" in found.text
    assert "parties.count = 10: ε = 22.2" in found.text
    assert found.charts == 2 + 1  # a panel for each, and one over both
    names = ["soft_vote (default)", "gaussian", "pooled (NON-PRIVATE)", "individual (NON-PRIVATE)"]
    row = "70.0 ± 1.467.5 to 72.5 70.0 ± 1.467.5 to 72.5 90.0 ± 0.090.0 to 90.0 50.0 ± 0.050.0 to 50.0 0.222"
    in_page(make_run("texts", settings=({"data.source": "A"}, {"data.source": "B"})), parts=[
        "".join(["data.source", *names, "ratio"]),
        f"ratio A{row} B{row} ",  # (.9 - .7) / .9
        "ε = 1: accuracy in percent, mean ± standard deviation over single releases. Ratio: by how much",
    ])  # fmt: skip


def test_a_run_without_guarantees_or_accuracies_is_named_in_a_comparison(make_run, tmp_path):
    private, off, other = make_run(), make_run("off", scenario="off-only"), make_run("mse", scenario="regression")
    rewrite(off, lambda line: ",inf," in line)
    rewrite(other, lambda line: ",accuracy," not in line)
    in_page(private, off, other, to=tmp_path / "all.html", absent=["digits-vote has"], parts=[
        "off-only has no variant with a guarantee; what stands here is NON-PRIVATE.",
        "off-only: pooled (NON-PRIVATE)",
        "regression has no accuracies, so nothing of it stands here.",
    ])  # fmt: skip
    none = make_run("none", scenario="two")
    rewrite(none, lambda line: ",accuracy," not in line)
    in_page(other, none, to=tmp_path / "b.html", parts=["regression has no accuracies", "two has no accuracies"])


@pytest.mark.parametrize(
    "command", [lambda runs: write_report(runs, runs[0] / "page.html"), lambda runs: report_command(runs, None, False)]
)
def test_a_directory_named_twice_and_one_without_a_run_are_refused(make_run, tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    directory = make_run()
    refused(None, command, [directory, tmp_path / "absent" / ".." / directory.name])
    empty = make_run("empty")
    rewrite(empty, lambda line: False)
    for absent in (tmp_path / "absent", empty):
        refused(rf"{re.escape(str(absent))}.*--resume", command, [directory, absent])
        assert not (tmp_path / "absent").exists()


def test_one_release_is_singular_and_nothing_costs_nothing(make_run):
    single = make_run()
    edited(single / "ledger.json", lambda found: found["worlds"][0]["published_together"][0].update(releases=1))
    rewrite(single, lambda line: ",0,0,accuracy," in line and "soft_vote," in line)
    in_page(single, parts=["1 release;", "over 1 release at each ε (1 split of the data)", "would cost:"])
    in_page(make_run("off", values={"soft_vote-off": (0.9, 0.9, 0.9)}), absent=["would cost"])


def test_a_total_says_which_releases_do_not_protect_its_unit(make_run):
    directory = make_run()

    def with_others(number):
        path = directory / "ledger.json"
        edited(path, lambda found: found["worlds"][0]["published_together"][0].update(others=number))

    with_others(0)
    in_page(directory, absent=["no guarantee for this unit"])
    with_others(3)
    in_page(directory, parts=["(without the 3 that give no guarantee for this unit)"])


def test_several_runs_are_compared(make_run, tmp_path):
    first, second = make_run(), make_run("again", values={"soft_vote": (0.1, 0.2, 0.3)})
    third = make_run("third", scenario="other")
    found = page(first, second, third, to=tmp_path / "all.html")
    for name in (f"digits-vote in {first}", f"digits-vote in {second}", "other"):
        assert f"{name}: soft_vote" in found.text
    assert "Comparison of 3 runs" in found.text
    assert [link.rpartition("/")[2] for link in found.officers] == [GUARANTEE] * 3
    assert len(set(found.officers)) == 3
    assert found.charts == 4
    assert {"#run-1", "#run-2", "#run-3", "#run-2-guarantees"} <= set(found.links)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("ledger.json", None),
        ("run.json", None),
        ("scenario.yaml", None),
        ("results.csv", "scenario,variant\n"),
        ("results.csv", "variant,value,metric\na,1,accuracy\n"),
        ("results.csv", "value\nnot a number\n"),
        ("ledger.json", "{"),
        ("ledger.json", "[]"),
        ("ledger.json", '{"worlds": 3}'),
        ("ledger.json", '{"worlds": [{"swept": {}}]}'),
        ("run.json", "{}"),
        ("run.json", '"text"'),
        ("scenario.yaml", b"\xff\xfe\xfa"),
    ],
)
def test_missing_and_damaged_artefacts_are_refused(make_run, name, content):
    directory = make_run()
    (directory / name).unlink()
    if content is not None:
        (directory / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=re.escape(str(directory / name if content is None else directory))):
        write_report([directory], directory / "report.html")
    assert not (directory / "report.html").exists()


def claiming(directory, variant, reasons):
    """The releases of a variant without the guarantees that they claim."""

    def without(ledger):
        for world in ledger["worlds"]:
            told = iter(reasons)
            for release in world["releases"]:
                if release["variant"] == variant:
                    claimed = (release["guarantee"]["epsilon"], 0.05)
                    release["guarantee"] = NoGuarantee(next(told), claimed).to_dict()

    edited(directory / "ledger.json", without)
    rewritten = (directory / "results.csv").read_text().splitlines(keepends=True)
    lines = [line.replace(",party,", ",none,") if f",{variant}," in line else line for line in rewritten]
    (directory / "results.csv").write_text("".join(lines))
    return directory


def test_claims_that_are_not_kept_are_told_as_such(make_run):
    run = claiming(make_run(values=PUBLISHED, non_private=True), "soft_vote-published", ["delta is .08"] * 3)
    in_page(run, absent=["oise is off"], parts=[
        "NON-PRIVATE. At least one variant claims a guarantee that it does not keep: what it released",
        "NON-PRIVATE: delta is .08.",
        "Claimed and not kept: ε = 0.1, δ = 0.05; ε = 1, δ = 0.05; ε = 10, δ = 0.05.",
        "soft_vote-published (NON-PRIVATE)",
        "NON-PRIVATE under some ε: it is claimed, not kept.",
    ])  # fmt: skip


def test_reasons_that_differ_say_where_they_hold_and_a_banner_names_both_ways_of_protecting_nobody(make_run):
    directory = make_run(values=PUBLISHED | {"x-off": (1.0, 1.0, 1.0)}, non_private=True)
    claiming(directory, "soft_vote-published", ["delta is .08", "delta is .2", "delta is .2"])
    in_page(directory, parts=[
        "NON-PRIVATE: ε = 0.1: delta is .08; ε = 1, ε = 10: delta is .2.",
        "NON-PRIVATE: noise is off.",
        "Noise is off for at least one variant and at least one variant claims a guarantee that it does not keep:",
    ])  # fmt: skip


def test_a_claim_that_some_epsilons_keep_is_no_guarantee(make_run):
    def without(ledger):
        for release in ledger["worlds"][0]["releases"]:
            if release["variant"] == "soft_vote-gaussian" and release["guarantee"]["epsilon"] > 1:
                release["guarantee"] = NoGuarantee("holds up to 1", (10.0, 1e-6)).to_dict()

    directory = make_run()
    edited(directory / "ledger.json", without)
    in_page(directory, parts=["NON-PRIVATE: ε = 10: holds up to 1."])


@pytest.mark.parametrize(
    ("unit", "said"), [("label", "the label of one row"), ("person", "the set of labels of one person")]
)
def test_it_says_whose_labels_are_protected(make_run, unit, said):
    directory = make_run()
    path = directory / "ledger.json"
    path.write_text(path.read_text().replace('"unit": "party"', f'"unit": "{unit}"'))
    in_page(directory, parts=[f"Protected is {said}: when it is replaced"])


def test_runs_of_different_tasks_are_compared_apart(make_run, tmp_path):
    votes, more, ratios = make_run(), make_run("more", scenario="more"), make_run("ratios", scenario="ratios")
    found = page(votes, more, renamed(ratios, "l1"), to=tmp_path / "all.html")
    before_runs = found.text[: found.text.index("What it is worth")]
    assert before_runs.index("Accuracy") < before_runs.index("more: soft_vote") < before_runs.index("L1 error")
    assert before_runs.index("L1 error") < before_runs.index("ratios: soft_vote")
    assert found.charts == 2 + 3  # both comparisons, and the runs of votes, whose figures are drawn


def missing(directory, variant, times):
    """Let a variant keep a multiple of the epsilon that it aims at."""
    results = directory / "results.csv"
    made = []
    for row in read_results(results):
        made.append(row)
        if row["variant"] == variant:
            aim = row["epsilon"]
            row["epsilon"] = times * aim
            made.append({**row, "metric": "aimed_epsilon", "value": aim, "noise": 0})
    write_results(results, made, [key for key in made[0] if key not in COLUMNS])
    return directory


def test_what_keeps_another_epsilon_says_so_and_is_no_rival(make_run, tmp_path):
    in_page(missing(make_run(), "soft_vote-gaussian", 4.6), parts=[
        "variantε = 0.1ε = 1ε = 10NON-PRIVATE",
        "0.600 ± 0.0140.575 to 0.625ε = 0.46",
        "ε under a value: kept instead of the one aimed at.",
    ])  # fmt: skip
    in_page(make_run("met"), absent=["kept instead"])
    leading = missing(make_run("leading", values={"soft_vote": VALUES["soft_vote"]}), "soft_vote", 2)
    in_page(leading, parts=["0.400 ± 0.0140.375 to 0.425ε = 0.2", "7.39 at ε = 2"])  # e^2
    runs = [missing(make_run("a", scenario="a"), "soft_vote", 3), make_run("b", scenario="b")]
    in_page(*runs, to=tmp_path / "both.html", parts=["variantε = 0.1ε = 1ε = 10 a: soft_vote"])


def test_learning_curves_are_on_the_page(make_run):
    directory = make_run()
    made = read_results(directory / "results.csv")
    made += [
        {**row, "metric": f"accuracy_at_round_{t}"} for t in (1, 2) for row in made if row["variant"] == "soft_vote"
    ]
    write_results(directory / "results.csv", made, [])
    found = page(directory)
    assert "Accuracy over round, ε = 1: mean over releases" in found.text
    assert found.charts == 2


def test_what_it_is_worth_comes_first(make_run):
    directory = make_run(sayings=[
        {"finding": "no better", "sentence": "soft_vote is no better than always saying “no” at ε = 0.1"},
        {"finding": None, "sentence": "soft_vote would be useful from ε = 1 on"},
        {"finding": "useful", "sentence": "soft_vote is useful at ε = 1 and 10"},
    ])  # fmt: skip
    text = page(directory).text
    worth = "✗ soft_vote is no better than always saying “no” at ε = 0.1. → soft_vote would be useful from ε = 1 on."
    assert worth in text
    assert text.index(worth) < text.index("Means are over 6 releases")
    assert text.index(worth) < text.index("Protected is all data of one party") < text.index("Accuracy over ε: mean")
    assert "✓" not in page(make_run("other")).text


def test_the_report_tells_origin_and_licence_of_the_data(make_run, tmp_path):
    run = make_run(origins=citations(["breast_cancer", "har"]))
    source = write_report([run], tmp_path / "page.html").read_text("utf-8")
    assert re.search(r"archive\.ics\.uci\.edu/dataset/17.*CC.*BY.*4\.0", source)
    assert "forbids commercial use.</p>" in source
    without = write_report([make_run("again")], tmp_path / "page.html").read_text("utf-8")
    assert "licence" not in without  # as of runs from before they told it
