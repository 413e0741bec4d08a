"""What releases over periods have spent, in words."""

from scenarios.reports.evidence import spent_over_periods

ENTRY = {
    "swept": {"parties.count": 20}, "variant": "soft_vote", "each": 0.5, "unit": "party", "adjacency": "replace",
    "releases": 3, "about_one": 3, "epsilon": 1.5, "delta": 0.0, "budget": {"epsilon": 2.0, "delta": 1e-6},
}  # fmt: skip
PART = {**ENTRY, "unit": "label", "about_one": 1, "epsilon": 0.5}
OTHER = {**ENTRY, "variant": "other", "budget": None}
LEDGER = {"over_periods": {"spent": [ENTRY, PART, OTHER]}}


def test_each_unit_has_a_sentence_with_its_share_and_the_budget():
    first, part, other = spent_over_periods(LEDGER)
    assert first == (
        "parties.count = 20, soft_vote at ε = 0.5 in 3 periods: ε = 1.5, δ = 0 for one party (replace), which has part "
        "in 3 of them at most; the budget is ε = 2, δ = 1e-06"
    )
    assert "ε = 0.5, δ = 0 for one label (replace), which has part in 1 of them at most" in part
    assert other.endswith("at most")


def test_one_variant_or_the_units_of_releases_alone_can_be_told():
    assert [line.split(" at ")[0] for line in spent_over_periods(LEDGER, "other")] == ["parties.count = 20, other"]
    assert ["label" in line for line in spent_over_periods(LEDGER, parts=False)] == [False, False]


def test_runs_without_periods_have_none():
    assert spent_over_periods({"worlds": []}) == []
