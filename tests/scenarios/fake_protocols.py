"""Small protocols for tests of scenario files, independent of the real ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from federation.contract.errors import InputError


@dataclass(frozen=True)
class Vote:
    """Options of many types."""

    unrelated: ClassVar[int] = 3

    perturb: Literal["statistic", "output"] = "statistic"
    sensitivity: Literal["published", "tight"] | None = None
    noise: Literal["pure", "off"] = "pure"
    relabel: Literal["on", "off"] = "on"
    regularisation: float | None = None
    rounds: int = 3
    fast: bool = False
    bins: tuple[int, ...] = (1, 2)
    note: str = ""

    def __post_init__(self) -> None:
        if self.regularisation is not None and self.regularisation <= 0:
            raise InputError(f"regularisation must be a positive number, got {self.regularisation}")


@dataclass(frozen=True)
class Count:
    """One option without a default, one with a factory."""

    size: int
    words: list[str] = field(default_factory=lambda: ["a"])


@dataclass(frozen=True)
class Ratio:
    """Another task, with noise that claims more than it keeps."""

    task: ClassVar[str] = "class_ratio"

    noise: Literal["auto", "pure", "published", "off"] = "auto"

    def spends(self, epsilon: float, delta: float) -> tuple[float, float] | None:
        """What a release is charged for."""
        known = {"auto": (epsilon, delta), "pure": (epsilon, 0.0)}
        return known.get(self.noise)


@dataclass(frozen=True)
class Slope:
    """A third task."""

    task: ClassVar[str] = "regression"

    noise: Literal["pure", "off"] = "pure"


KINDS: dict[str, Any] = {"count": Count, "ratio": Ratio, "slope": Slope, "soft_vote": Vote}
