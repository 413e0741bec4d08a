"""What all sections of a scenario file have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from federation.contract.limits import MOST_ROWS

Count = Annotated[int, Field(ge=1, le=MOST_ROWS)]


class Section(BaseModel):
    """Part of a scenario: immutable, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
