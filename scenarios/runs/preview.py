"""What a run would do, from public numbers and the data's shape; nothing is trained and nothing is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scenarios.data.tables import describe
from scenarios.runs.runner import cells, check_budget, usable_data, world_of
from scenarios.runs.world import World
from scenarios.settings.schema import Scenario
from scenarios.settings.sweep import releases, variants
from scenarios.simulated.targets import Targets, target_sets, wants_targets


def preview(scenario: Scenario, data_dir: Path | None) -> dict[str, Any]:
    """Worlds, parties, rows and releases of a scenario as plain JSON values.

    Raises `InputError` for data that cannot be used and `BudgetExceededError` like a run.
    """
    check_budget(scenario)
    folder = None if data_dir is None else str(data_dir)
    todo = cells(scenario, folder)
    usable_data(todo, folder)
    points: list[dict[str, Any]] = []
    for cell in todo:
        if cell.split > 0:
            continue
        world = world_of(cell, Path(), folder)
        pieces = world.split
        points.append({
            "swept": cell.setting.swept,
            "data": describe(pieces.table),
            "parties": pieces.cut.parties,
            "bags_per_party": pieces.cut.bags_per_party,
            "smallest_bag": int(pieces.cut.bag_sizes.min()),
            "largest_bag": pieces.cut.largest_bag,
            "private_rows": len(pieces.cut.order),
            "auxiliary_rows": len(pieces.cut.auxiliary),
            "test_rows": len(pieces.cut.test),
            "features": world.feature_map.dimension,
            **_targets(world),
        })  # fmt: skip
    point = todo[0].setting.scenario
    listed = variants(point)
    return {
        "scenario": scenario.name,
        "worlds": len(todo),
        "points": points,
        "variants": [
            {"name": variant.name, "protocol": variant.kind, "default": variant.default, "options": variant.options}
            for variant in listed
        ],
        "epsilon": list(point.privacy.epsilon),
        "delta": point.privacy.delta,
        "releases": len(todo) * sum(releases(variant, point) for variant in listed),
        "engine": point.engine.kind,
    }  # fmt: skip


def _targets(world: World) -> dict[str, Any]:
    """The unlabelled sets whose class ratios would be estimated, if any."""
    point, pieces = world.scenario, world.split
    if not wants_targets(point):
        return {}
    sets = target_sets(pieces.table, pieces.cut.test, point.data.targets, seed=point.seed, split=world.spec.split)
    known = point.data.targets or Targets()
    varied = known.vary or pieces.table.classes[0]
    return {"target_sets": len(sets), "target_rows": len(sets[0].indices), "target_shares_of": varied}
