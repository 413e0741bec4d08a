"""What the protocols have in common whose parties protect real labels themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from aggregator.job import World
    from aggregator.plan import VariantPlan
    from aggregator.regression_job import RegressionJob


class LabelProtocol:
    """Options of such a protocol derive from it, as dataclasses (`aggregator.regression_job.RegressionProtocol`)."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}
    task: ClassVar[str] = "regression"
    default_features: ClassVar[tuple[str, ...]] = ("standardise", "constant")

    def job(self, world: World, variant: VariantPlan) -> RegressionJob:
        """What the aggregator's app asks and finishes (`aggregator.job.Job`)."""
        from aggregator.regression_job import RegressionJob

        return RegressionJob(world, variant, self)  # type: ignore[arg-type]  # what derives from it is one
