"""What all sections of a scenario file have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=1, le=10**9)]


class Section(BaseModel):
    """Part of a scenario: immutable, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")
