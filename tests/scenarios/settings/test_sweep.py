from itertools import product
from typing import Any

import pytest

from scenarios.settings.schema import resolve
from scenarios.settings.sweep import cell_id, expand, swept_columns, variants, world_key

pytestmark = pytest.mark.usefixtures("protocols")

MINIMAL: dict[str, Any] = {"data": {"source": "digits"}, "parties": {"count": 50}, "privacy": {"epsilon": [1, 2]}}
RATIOS = "protocols=[{kind: ratio}]"


def test_worlds_are_the_product_in_schema_order_last_key_fastest_and_without_lists_there_is_one():
    scenario = resolve(MINIMAL)
    (setting,) = expand(scenario)
    assert (setting.swept, setting.scenario) == ({}, scenario)
    assert swept_columns(scenario) == []
    swept = [
        "parties.classifier.logistic.regularisation=[1e-4, 1]", "parties.rows=[3, null]", "data.auxiliary=[0.5, 100]",
        "protocols=[{kind: soft_vote, rounds: [1, 3]}, {kind: count, size: [1, 2]}, {kind: soft_vote, noise: off}]",
    ]  # fmt: skip
    scenario = resolve(MINIMAL, swept)
    points = expand(scenario)
    assert [tuple(point.swept.values()) for point in points] == [*product((0.5, 100), (3, None), (1e-4, 1.0))]
    for point in points:
        assert point.scenario.data.auxiliary == point.swept["data.auxiliary"]
        assert point.scenario.parties.rows == point.swept["parties.rows"]
        parameters = point.scenario.parties.classifier["parameters"]
        assert parameters["regularisation"] == point.swept["parties.classifier.logistic.regularisation"]
        assert (point.scenario.parties.count, point.scenario.privacy.epsilon) == (50, (1.0, 2.0))
        assert len(expand(point.scenario)) == 1
        assert resolve(point.scenario.to_plain()) == point.scenario
    assert swept_columns(scenario) == [
        "data.auxiliary", "parties.rows", "parties.classifier.logistic.regularisation", "protocols.rounds",
        "protocols.size",
    ]  # fmt: skip


def test_what_the_aggregator_does_with_answers_changes_no_noise_and_is_another_cell() -> None:
    points = expand(resolve(MINIMAL, ["parties.robust=[true, false]", "parties.alike=[false, true]"]))
    plain = expand(resolve(MINIMAL))[0]
    assert [{*point.swept} for point in points] == [{"parties.alike", "parties.robust"}] * 4
    assert {world_key(point, 0) for point in points} == {world_key(plain, 0)}
    assert len({cell_id(point, 0) for point in points}) == 4
    [same] = [point for point in points if point.scenario.parties == plain.scenario.parties]
    assert cell_id(same, 0) == cell_id(plain, 0)


def test_sections_are_swept_as_readable_texts_and_numbers_inside_them_as_numbers():
    partitions = "[iid, {by: subject}, {dirichlet: 1}, {proportions: [[1, 0], [0.25, 0.75]]}]"
    classifiers = "[logistic, {GaussianNB: {var_smoothing: 1e-9}}]"
    scenario = resolve(MINIMAL, [f"parties.partition={partitions}", f"parties.classifier={classifiers}"])
    assert [tuple(point.swept.values()) for point in expand(scenario)] == [
        *product(
            ("iid", "by=subject", "dirichlet=1.0", "proportions=1_0-0.25_0.75"),
            ("logistic(regularisation=0.0001)", "GaussianNB(var_smoothing=1e-09)"),
        )
    ]
    hostile = "parties.hostile={fraction: [0, 0.1], kind: [flip, random]}"
    scenario = resolve(MINIMAL, ["parties.partition={dirichlet: [0.1, 1]}", "parties.dropout=[0, 0.2]", hostile])
    points = expand(scenario)
    assert swept_columns(scenario) == [
        "parties.dropout", "parties.partition.dirichlet", "parties.hostile.fraction", "parties.hostile.kind",
    ]  # fmt: skip
    assert [tuple(point.swept.values()) for point in points] == [
        *product((0.0, 0.2), (0.1, 1.0), (0.0, 0.1), ("flip", "random"))
    ]
    for point in points:
        parties = point.scenario.parties
        assert parties.partition == {"dirichlet": point.swept["parties.partition.dirichlet"]}
        assert parties.dropout == point.swept["parties.dropout"]
        assert parties.hostile is not None
        assert parties.hostile.fraction == point.swept["parties.hostile.fraction"]
        assert parties.hostile.kind == point.swept["parties.hostile.kind"]
        assert resolve(point.scenario.to_plain()) == point.scenario
    assert len({cell_id(point, 0) for point in points}) == len(points)
    points = expand(resolve(MINIMAL, ["parties.partition={majority: [0, 0.1]}"]))
    assert [dict(point.swept) for point in points] == [{"parties.partition.majority": share} for share in (0.0, 0.1)]
    assert points[1].scenario.parties.partition == {"majority": 0.1}


def test_bags_persons_and_targets_are_swept() -> None:
    swept = [
        "parties={count: 6, bags: [2, {by: ward}]}", "data.person=who", "data.rows_per_person=[1, 2]",
        "data.targets={rows: [50, 100], vary: [a, b]}", "protocols=[{kind: ratio}]",
    ]  # fmt: skip
    scenario = resolve(MINIMAL, swept)
    assert swept_columns(scenario) == [
        "data.rows_per_person", "data.targets.rows", "data.targets.vary", "parties.bags",
    ]  # fmt: skip
    points = expand(scenario)
    wanted = [*product((1, 2), (50, 100), ("a", "b"), (2, "by=ward"))]
    assert [tuple(point.swept.values()) for point in points] == wanted
    for point in points:
        assert point.scenario.data.targets is not None
        assert point.scenario.data.targets.vary == point.swept["data.targets.vary"]
        assert resolve(point.scenario.to_plain()) == point.scenario
    assert len({cell_id(point, 0) for point in points}) == len(points)
    assert len({world_key(point, 0) for point in points}) == 4  # target sets leave the releases as they are


def key(*overrides: str) -> str:
    return world_key(expand(resolve(MINIMAL, overrides))[0], 0)


def test_worlds_where_everybody_answers_honestly_have_their_old_noise_and_real_labels_one_for_every_range():
    features = "data.features=[scale, {whiten: 10}, constant, unit_norm]"
    same = [(), ("parties.dropout=0.0",), ("parties.hostile={fraction: 0, kind: random}",), ("parties.bags=1",)]
    same += [("data.rows_per_person=1",), ("data.targets={rows: 9}", RATIOS)]
    assert {key(features, *one) for one in same} == {"767493f2f7ad2080"}  # a change would change known results' noise
    others = [
        ("parties.bags=2", RATIOS), ("data.person=who",), ("data.positive=[a]",), ("data.drop=[a]",),
        ("parties.dropout=0.1",), ("parties.hostile={fraction: 0.1}",), ("parties.dropout=0.2",),
        ("parties.hostile={fraction: 0.1, kind: random}",), ("parties.partition={quantity: 1}",), (),
    ]  # fmt: skip
    assert len({key(features, *one) for one in others}) == len(others)
    given = ("data.source=diabetes", "protocols=[{kind: slope}]")
    assert key(*given, "data.outside=refuse") == key(*given)
    different = [(), ("data.range=[0, 400]",), ("data.range=[0, 500]",), ("data.range=[0, 400]", "data.outside=clip")]
    assert len({key(*given, *one) for one in different}) == 4


def test_a_moved_file_of_public_rows_has_the_noise_that_it_had_and_another_file_has_its_own() -> None:
    def key(auxiliary: str, digest: str) -> str:
        return world_key(expand(resolve(MINIMAL, [f"data.auxiliary={auxiliary}"]))[0], 0, digest)

    assert key("here/public.csv", "a b") == key("there/rows.parquet", "a b") != key("here/public.csv", "a c")
    assert key("0.25", "a b") != key("here/public.csv", "a b")


def test_variants_carry_names_options_and_swept_columns_and_at_most_one_is_the_default():
    entries = (
        "protocols=[{kind: pooled}, {kind: soft_vote, perturb: output, sensitivity: published, "
        "regularisation: [1e-4, 1]}, {kind: soft_vote, rounds: 3}, {kind: count, size: 1}]"
    )
    found = variants(resolve(MINIMAL, [entries, "baselines=false"]))
    published = "soft_vote-output-published-regularisation"
    names = ["pooled", f"{published}=0.0001", f"{published}=1", "soft_vote", "count-size=1"]
    assert [(variant.name, variant.default) for variant in found] == [(name, name == "soft_vote") for name in names]
    assert found[1].swept == {"protocols.regularisation": 1e-4}
    assert found[1].options["regularisation"] == 1e-4
    assert found[0].options == found[0].swept == found[3].swept == {}
    for entries, default in (
        ("[{kind: count, size: 1}, {kind: soft_vote}]", []),
        ("[{kind: individual}, {kind: soft_vote}]", ["soft_vote"]),
        ("[{kind: soft_vote, noise: off}]", []),
        ("[{kind: soft_vote, noise: [off, pure]}]", ["soft_vote"]),
        ("[{kind: pooled}]", []),
    ):
        found = variants(resolve(MINIMAL, [f"protocols={entries}"]))
        assert [variant.name for variant in found if variant.default] == default


def test_a_cell_is_named_by_what_its_results_depend_on() -> None:
    def cell(*overrides: str, split: int = 0) -> str:
        return cell_id(expand(resolve(MINIMAL, overrides))[0], split)

    base = cell()
    assert len(base) == 16
    assert int(base, 16) >= 0
    same = ["name=other", "description=x", "trials.splits=9", "engine.kind=ray", "engine.workers=3"]
    assert {cell(override) for override in same} == {base}
    assert cell("data.targets={}", RATIOS) == cell(RATIOS)  # the defaults, said or not
    assert cell("data.targets={rows: 9}", RATIOS) != cell(RATIOS)
    # A point of a sweep is the same world as the scenario that holds its value alone.
    assert cell("parties.count=[50, 60]") == base
    different = [
        "seed=2", "trials.noise=9", "parties.count=51", "data.test=0.3", "privacy.epsilon=1",
        "privacy.delta=1e-5",
        "protocols=[{kind: pooled}]", "parties.classifier.logistic.regularisation=1", "data.features=[]",
    ]  # fmt: skip
    cells = [base, cell(split=1), *(cell(override) for override in different)]
    assert len(set(cells)) == len(cells)
