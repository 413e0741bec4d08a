"""The section `data.targets`: the sets of test rows whose class ratios are estimated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from scenarios.settings.problems import rule
from scenarios.settings.protocol_options import task
from scenarios.settings.section import Count, Section
from scenarios.settings.values import ClassName, Sweep
from scenarios.simulated.targets import MOST_ROWS, SHARES

if TYPE_CHECKING:
    from scenarios.settings.schema import Scenario


def _distinct(shares: tuple[float, ...]) -> tuple[float, ...]:
    if not shares or len(set(shares)) < len(shares):
        raise rule("must be one or more different shares")
    return shares


class Targets(Section):
    """The target sets: one for each share of one class, the other classes in equal parts."""

    rows: Annotated[Count | None, Sweep()] = Field(
        default=None,
        description=f"Rows of each set; null takes as many as the test rows allow for all shares, up to {MOST_ROWS}.",
    )
    shares: Annotated[tuple[Annotated[float, Field(ge=0, le=1)], ...], AfterValidator(_distinct)] = Field(
        default=SHARES,
        description="Shares of the varied class, one set for each; the other classes have equal parts of the rest.",
    )
    vary: Annotated[ClassName | None, Sweep()] = Field(
        default=None, description="Name of the class whose share varies; null is the first class."
    )


def wants_targets(scenario: Scenario) -> bool:
    """Whether a scenario estimates class ratios."""
    return task(entry.kind for entry in scenario.protocols).targets
