"""What a run would do, from public numbers and the data's shape; nothing is trained and nothing is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scenarios.data.tables import describe
from scenarios.runs.runner import check_budget, usable_data
from scenarios.runs.world import World, worlds
from scenarios.settings.schema import Scenario
from scenarios.settings.sweep import releases, variants
from scenarios.simulated.targets import wants_targets


def preview(scenario: Scenario, data_dir: Path | None) -> dict[str, Any]:
    """Worlds, parties, rows and releases of a scenario as plain JSON values.

    Raises `InputError` for data that cannot be used and `BudgetExceededError` like a run.

    Examples:
        >>> from scenarios.settings.schema import resolve
        >>> found = preview(resolve("quickstart"), None)
        >>> found["worlds"], found["releases"], found["points"][0]["parties"]
        (5, 1000, 200)
    """
    check_budget(scenario)
    todo = worlds(scenario, None if data_dir is None else str(data_dir))
    usable_data(todo)
    point = todo[0].scenario
    listed = variants(point)
    return {
        "scenario": scenario.name,
        "worlds": len(todo),
        "points": [_point(world) for world in todo if world.spec.split == 0],
        "variants": [
            {"name": variant.name, "protocol": variant.kind, "default": variant.default, "options": variant.options}
            for variant in listed
        ],
        "epsilon": list(point.privacy.epsilon),
        "delta": point.privacy.delta,
        "releases": len(todo) * sum(releases(variant, point) for variant in listed),
        "engine": point.engine.kind,
    }


def _point(world: World) -> dict[str, Any]:
    """One setting of the sweep, with the unlabelled sets whose class ratios would be estimated, if any."""
    table, cut = world.split.table, world.split.cut
    found = {
        "swept": world.swept,
        "data": describe(table),
        "parties": cut.parties,
        "bags_per_party": cut.bags_per_party,
        "smallest_bag": int(cut.bag_sizes.min()),
        "largest_bag": cut.largest_bag,
        "private_rows": len(cut.order),
        "auxiliary_rows": len(world.split.public.rows),
        "test_rows": len(cut.test),
        "features": world.feature_map().dimension,
    }
    if not wants_targets(world.scenario):
        return found
    sets, declared = world.targets(), world.scenario.data.targets
    varied = (declared and declared.vary) or table.classes[0]
    return {**found, "target_sets": len(sets), "target_rows": len(sets[0].indices), "target_shares_of": varied}
