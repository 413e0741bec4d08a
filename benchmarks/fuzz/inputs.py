"""What is tried: inputs, and the targets that make them from real ones and try them."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar


@dataclass(frozen=True)
class Input:
    """One input: `content` as it would arrive, and the `route` that it takes, of letters, digits, `_` and `+`."""

    route: str
    content: bytes


class Target(ABC):
    """One kind of input; `folder` is a scratch folder of its own. What a user would read as one sentence is raised."""

    name: ClassVar[str]
    count: ClassVar[int]  # inputs of a whole run

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def seeds(self) -> Sequence[Input]:
        """Real inputs, from which all others are made; the same in every process."""

    @abstractmethod
    def mutated(self, source: random.Random, known: Sequence[Input]) -> Input:
        """One of the `known` inputs, changed."""

    @abstractmethod
    def attempt(self, given: Input) -> str:
        """Try an input through the code that users' inputs take; returns in words what came of one that is taken.

        Raises what that code raises: `FederationError`s refuse an input, whatever else is a finding.
        """

    @classmethod
    def suffix(cls, given: Input) -> str:
        """The ending of a file that keeps an input."""
        return ".bin"
