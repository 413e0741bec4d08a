"""The public range of real labels in a plan.

What is known of a world before anything is asked.
"""

import json
import math
from dataclasses import FrozenInstanceError, fields

import pytest

from aggregator.trial.plan import PublicNumbers, TrialPlan, VariantPlan, product
from federation.contract.errors import InputError


def test_the_names_in_a_file_are_those_of_earlier_versions_and_a_range_survives_it(make_plan, tmp_path):
    plan = make_plan(servers="two", private_rows=7, common_bags=True, periods={"party": 3}, timeout=2.0)
    plan.save(tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text()).keys() == {
        "world", "directory", "noise_seed", "simulation", "split", "parties", "parties_per_node", "quorum", "timeout",
        "classes", "class_names", "public", "features", "classifier", "variants", "epsilons", "delta", "budget",
        "draws", "individual", "bags", "largest_bag", "rows_per_person", "label_range", "smallest_bag",
        "private_rows", "shifted", "sparing", "colluding", "servers", "reference", "robust", "alike", "in_letters",
        "summation", "chosen", "choice", "periods", "common_bags",
    }  # fmt: skip
    assert TrialPlan.load(tmp_path / "plan.json") == plan
    assert plan.public.label_range is None
    with pytest.raises(TypeError, match="nothing"):
        make_plan(nothing=1)
    make_plan(classes=(), label_range=(0, 52.5)).save(tmp_path / "plan.json")
    found = TrialPlan.load(tmp_path / "plan.json")
    assert (found.public.label_range, found.task.classes) == ((0.0, 52.5), ())


@pytest.mark.parametrize("changes", [
    *({"classes": (), "label_range": ends} for ends in ((1.0, 1.0), (2.0, 1.0), (0.0, math.inf), (math.nan, 1.0))),
    {"label_range": (0.0, 1.0)},
    *({"variants": (VariantPlan(name, "soft_vote", {}),)}
      for name in ("", ".", "..", "../../elsewhere", "/elsewhere", "a\\b", "a/b", "a\0", "a\nb")),
])  # fmt: skip
def test_a_range_has_two_finite_ends_classes_have_none_and_a_file_in_the_directory_can_have_a_variants_name(
    make_plan, changes
):
    with pytest.raises(InputError):
        make_plan(**changes)


@pytest.mark.parametrize("changes", [
    {"parties": 10**12}, {"parties": 0}, {"parties": True}, {"parties": "4"}, {"parties_per_node": 0}, {"draws": 0},
    {"bags": -1}, {"delta": 1.0}, {"delta": "0"}, {"epsilons": []}, {"epsilons": ["1"]}, {"epsilons": [0]},
    {"quorum": 0}, {"colluding": 1}, {"robust": "no"}, {"alike": 1}, {"classes": "ab"}, {"classes": [1, 2]},
    {"classes": ["a"]}, {"classes": ["a", "a"]}, {"classifier": {"name": "logistic"}},
    {"classifier": {"name": "logistic", "parameters": 1}}, {"classifier": {"name": [], "parameters": {}}},
    {"features": 1}, {"label_range": [0, "1"]}, {"budget": "1"}, {"budget": {"epsilon": "1"}}, {"budget": {}},
    {"budget": {"epsilon": 1, "delta": 0, "unit": 1}}, {"periods": {"party": 0}}, {"periods": {"party": "7"}},
    {"periods": {"crowd": 7}}, {"public": {"target": 1}}, {"public": []},
    {"variants": [{"name": {}, "kind": "soft_vote", "options": {}}]},
    {"variants": [{"name": "a", "kind": [], "options": {}}]}, {"variants": [[]]}, {"unknown": 1},
])  # fmt: skip
def test_a_file_with_a_part_of_another_type_or_out_of_range_is_refused(make_plan, tmp_path, changes):
    file = tmp_path / "plan.json"
    make_plan().save(file)
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    with pytest.raises(InputError):
        TrialPlan.load(file)


@pytest.mark.parametrize("text", ["", "[]", "1", "[1]", "[" * 100_000, "{}"])
def test_a_file_that_is_no_plan_is_refused(tmp_path, text):
    file = tmp_path / "plan.json"
    file.write_text(text)
    with pytest.raises(InputError):
        TrialPlan.load(file)


def test_no_two_variants_share_a_file_or_their_noise_and_before_any_data_is_read_only_delta_is_known(make_plan):
    """As where names are swapped: noise follows from keys alone, and a reference has none."""
    for name, key in (("mine", ""), ("MINE", ""), ("another", "mine")):
        with pytest.raises(InputError):
            make_plan(variants=(VariantPlan("mine", "soft_vote", {}), VariantPlan(name, "majority_vote", {}, key)))
    swapped = VariantPlan("a", "soft_vote", {}, "b"), VariantPlan("b", "majority_vote", {}, "a")
    reference = VariantPlan("noise_free", "soft_vote", {}, "a", reference=True)
    assert len(make_plan(variants=(*swapped, reference)).variants) == 3
    numbers = PublicNumbers(1e-6)
    unknown = {one.name for one in fields(numbers) if getattr(numbers, one.name) is None}
    assert unknown == {
        "terms", "classes", "features", "public_rows", "bags", "smallest_bag", "largest_bag", "label_range",
        "common_bags", "rows", "attainable", "majority", "residual",
    }  # fmt: skip
    assert (numbers.delta, numbers.draws, numbers.rows_per_person) == (1e-6, 1, 0)
    with pytest.raises(FrozenInstanceError):
        numbers.delta = 0.5


@pytest.mark.parametrize(("sizes", "expected"), [
    ((), 1), ((7,), 7), ((2, 3, 4), 24), ((5, 0), 0), ((2**40, 2**40), 2**80), ((None,), None), ((2, None, 3), None),
    ((0, None), None),
])  # fmt: skip
def test_a_product_is_known_where_all_its_sizes_are(sizes, expected):
    assert product(*sizes) == expected
