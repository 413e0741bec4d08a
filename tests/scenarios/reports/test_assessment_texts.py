"""Verdicts in sentences.

What is said of the bags of a run, from the rows of results.csv.
"""

import re

from support.verdict_rows import SPLITS, around, beside, rows

from scenarios.reports.assessment import Known, verdicts
from scenarios.reports.assessment_texts import bag_remarks, constant_answer, told
from scenarios.scores.results import CONSTANT_CLASS

NO = "always saying “no”"


def said(*values, epsilons=(1.0, 3.0), diagnosed=False, **baselines):
    """The sentences of releases about these values."""
    known = beside(**baselines)
    for epsilon, value in zip(epsilons, values, strict=False):
        known += rows("soft_vote", "accuracy", value, epsilon)
    return [sentence for _, sentence in told(verdicts(known), NO)]


def test_every_epsilon_has_a_verdict_and_equal_ones_share_a_sentence():
    known = beside()
    for epsilon, value in ((0.1, 0.5), (1.0, 0.7), (3.0, 0.8)):
        known += rows("soft_vote", "accuracy", around(value), epsilon)
    found = verdicts(known)
    assert [(one.epsilon, one.finding) for one in found] == [(0.1, "no better"), (1.0, "useful"), (3.0, "useful")]
    sentences = told(found, NO)
    assert [finding for finding, _ in sentences] == ["no better", None, "useful"]
    assert "no better than always saying “no” at ε = 0.1" in sentences[0][1]
    assert re.search(r"soft_vote.*1.*0\.1", sentences[1][1])
    assert "at ε = 1 and 3" in sentences[2][1]
    assert "50 and 75 % of that gain are kept" in sentences[2][1]
    [(finding, sentence)] = told(verdicts([*rows("soft_vote", "accuracy", [0.8], 1.0), *beside(splits=1)]), NO)
    assert finding == "cannot be told"
    assert "raise trials.splits" in sentence


def test_the_constant_answer_is_named_by_its_class():
    said = rows("constant", CONSTANT_CLASS, [1.0, 1.0, 0.0])
    assert constant_answer(said, ["yes", "no"]) == "always saying “no”"
    assert constant_answer(said, []) == "always saying one class"
    assert "mean label" in constant_answer(rows("constant", "mse", [1.0]), [])
    assert "class shares" in constant_answer(rows("constant", "l1", [1.0]), ["a", "b"])


def test_what_protocol_and_noise_lose_is_said_where_splits_tell_it():
    [useful, *_] = said(around(0.6), around(0.8), pooled=0.9, noise_free=0.8)
    assert useful.endswith("25 and 75 % of that gain are kept; the protocol itself loses 25 %, its noise 50 and 0 %")
    [useful, *_] = said(around(0.6), noise_free=0.9)
    assert useful.endswith("; the protocol itself loses nothing that can be told, its noise 75 %")
    [useful, *_] = said(around(0.9), noise_free=0.9)
    assert useful.endswith("100 % of that gain are kept")


def test_it_says_what_stands_in_the_way_and_calls_nothing_no_better_that_is_so_in_the_mean():
    assert said(around(0.5), noise_free=0.8)[0].endswith("has 0.500; without its noise it is useful, with 0.800")
    nor = "; nor is it without its noise (0.500)"
    assert said(around(0.5), noise_free=0.5)[0].endswith(f"{nor}, so that less noise would not help")
    assert said(around(0.5), around(0.7), noise_free=0.5)[0].endswith(nor)  # the run shows that less noise does
    assert said(around(0.5), pooled=0.5, noise_free=0.5)[0].endswith("; nor are all rows pooled")
    [unsure] = said([0.4, 0.9, 0.5, 0.8, 0.45], noise_free=0.8)
    assert unsure.endswith(
        "that has 0.500 (95 % interval of the difference: -0.169 to +0.389), all rows pooled 0.900, without its noise "
        "0.800"
    )
    first, second, *_ = said([[0.9, 0.45]] * 4 + [[0.8, 0.45]])
    assert first.startswith("soft_vote cannot be counted on to beat always saying “no” at ε = 1: accuracy 0.665")
    assert second.endswith("50 % of single releases are better")


def test_who_is_ahead_is_said_with_the_guarantee():
    known = [*rows("soft_vote", "accuracy", around(0.6), 1.0), *beside(individual=None)]
    for name, value, delta in (("equal", 0.65, 0.0), ("looser", 0.7, 1e-6)):
        found = rows("soft_vote", "accuracy", around(value), 1.0, delta=delta)
        known += [{**row, "variant": name, "default": 0} for row in found]
    assert [sentence for _, sentence in told(verdicts(known), NO)][1:] == [
        "soft_vote is behind equal at ε = 1, which with the same guarantee has accuracy 0.650",
        "soft_vote is behind looser at ε = 1, which with another guarantee (δ = 1e-06) has accuracy 0.700",
    ]


def test_the_order_of_rows_is_told_beside_balanced_accuracy():
    known = []
    for name, balanced, auc in (("constant", 0.5, 0.5), ("pooled", 0.5, 0.7), ("noise_free", 0.5, 0.65)):
        for metric, value in (("accuracy", 0.97), ("balanced_accuracy", balanced), ("auc", auc)):
            known += rows(name, metric, [value] * SPLITS)
    for metric, value in (("accuracy", 0.97), ("balanced_accuracy", 0.5), ("auc", 0.55)):
        known += rows("soft_vote", metric, around(value), 1.0)
    assert [sentence for _, sentence in told(verdicts(known), NO)][-1] == (
        "soft_vote at ε = 1, as an order of rows: AUC 0.550 (0.5 is chance, all rows pooled 0.700, without its noise "
        "0.650)"
    )


def test_where_the_curve_does_not_help_public_numbers_say_how_many_parties_it_takes():
    def with_needed(**baselines):
        known = [*rows("soft_vote", "accuracy", around(0.5), 1.0), *beside(**baselines)]
        return [text for _, text in told(verdicts(known, Known(needed={("", "soft_vote", 1.0): 723})), NO)]

    assert with_needed()[-1] == (
        "soft_vote would need about 730 parties at ε = 1 for noise a quarter as loud as all that they can say"
    )
    assert len(with_needed(noise_free=0.5)) == 1  # noise is not what stands in the way


MIXED = {"bags": 9.0, "drift_p_value": 0.001, "error_mean_of_bags": 0.4, "error_auto": 0.2, "weight_whitened": 1.0}
ALONE = {"bags": 9.0, "error_mean_of_bags": 0.4, "error_bag_classifier": 0.1, "weight_bag_classifier": 1.0}
FEW = {"bags": 2.0, "weight_bag_classifier": 1.0}


def bags(variant, *releases):
    return [
        {"variant": variant, "epsilon": 1.0, "split": split, "noise": 0, "metric": metric, "value": value}
        for split, told in enumerate(releases)
        for metric, value in {"l1_error": 0.3, "smallest_singular_value": 0.5, **told}.items()
    ]


def test_numbers_of_bags_are_means_over_the_releases_that_a_line_is_about():
    assert bag_remarks([]) == []
    assert bag_remarks(bags("whitened", {}, {})) == []
    assert bag_remarks(bags("auto", ALONE, ALONE)) == []
    other = {**MIXED, "error_auto": 0.3, "weight_whitened": 0.5, "weight_regression": 0.5}
    [line] = bag_remarks(bags("auto", MIXED, other, ALONE))
    assert line.startswith("auto: in 2 of 3 releases these bags differ in more than their ratios")
    assert re.search(r"75.*25.*L1.*0\.25", line)
    found = bag_remarks([*bags("auto", FEW, MIXED, MIXED), *bags("other", FEW)])  # the most frequent first
    assert [line.partition(":")[0] for line in found] == ["auto", "auto", "other"]
    assert "in 2 of 3 releases" in found[0]
    assert found[1].startswith("auto: in 1 of 3 releases whether bags differ")
    assert found[2].startswith("other: whether bags differ in more than their class ratios cannot be checked with 2 ")
