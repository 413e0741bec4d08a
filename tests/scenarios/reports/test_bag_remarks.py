"""What is said of the bags of a run, from the rows of results.csv."""

from __future__ import annotations

from scenarios.reports.assessment_texts import bag_remarks

MIXED = {"bags": 9.0, "drift_p_value": 0.001, "error_mean_of_bags": 0.4, "error_auto": 0.2, "weight_whitened": 1.0}
ALONE = {"bags": 9.0, "error_mean_of_bags": 0.4, "error_bag_classifier": 0.1, "weight_bag_classifier": 1.0}
FEW = {"bags": 2.0, "weight_bag_classifier": 1.0}


def rows(variant, *releases):
    return [
        {"variant": variant, "epsilon": 1.0, "split": split, "noise": 0, "metric": metric, "value": value}
        for split, told in enumerate(releases)
        for metric, value in {"l1_error": 0.3, "smallest_singular_value": 0.5, **told}.items()
    ]


def test_a_run_without_such_an_estimator_or_without_drift_is_not_remarked_on():
    assert bag_remarks([]) == []
    assert bag_remarks(rows("whitened", {}, {})) == []
    assert bag_remarks(rows("auto", ALONE, ALONE)) == []


def test_numbers_are_means_over_the_releases_that_a_line_is_about():
    other = {**MIXED, "error_auto": 0.3, "weight_whitened": 0.5, "weight_regression": 0.5}
    [line] = bag_remarks(rows("auto", MIXED, other, ALONE))
    assert line.startswith("auto: in 2 of 3 releases these bags differ in more than their ratios")
    assert "(75 % whitened, 25 % regression): L1 error 0.25 there" in line


def test_every_variant_and_reason_has_its_line_the_most_frequent_first():
    found = bag_remarks([*rows("auto", FEW, MIXED, MIXED), *rows("other", FEW)])
    assert [line.partition(":")[0] for line in found] == ["auto", "auto", "other"]
    assert "in 2 of 3 releases" in found[0]
    assert found[1].startswith("auto: in 1 of 3 releases whether bags differ")
    assert found[2].startswith("other: whether bags differ in more than their class ratios cannot be checked with 2 ")
