"""What the protocols have in common whose parties protect real labels themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from aggregator.labels.regression_job import RegressionJob
    from aggregator.world.job import World
    from aggregator.world.plan import VariantPlan


class LabelProtocol:
    """Options of such a protocol are dataclasses that derive from it (`aggregator.labels.regression_job`)."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}
    task: ClassVar[str] = "regression"
    default_features: ClassVar[tuple[str, ...]] = ("standardise", "constant")

    def job(self, world: World, variant: VariantPlan) -> RegressionJob:
        """What the aggregator's app asks and finishes (`aggregator.world.job.Job`)."""
        from aggregator.labels.regression_job import RegressionJob

        return RegressionJob(world, variant, self)  # type: ignore[arg-type]  # what derives from it is one
