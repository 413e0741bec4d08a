"""A protocol that has only a task and some noise, as one might write it who saw no contract."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from aggregator.contract.protocol import Protocol


@dataclass(frozen=True)
class MissingMember(Protocol):
    """It has only a task and some noise."""

    task: ClassVar[str] = "classification"

    noise: Literal["pure", "off"] = "pure"
