"""The parts of a page that are printed by the product, and what stands in fences beside them.

    <!-- generated: KIND
    settings as YAML
    -->
    what was printed last
    <!-- end -->

One line is enough where the settings are short: `<!-- generated: KIND {run: quickstart} -->`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

_BLOCK = re.compile(
    r"(?P<head><!-- generated: (?P<kind>\w+)\s(?P<settings>.*?)-->\n)(?P<content>.*?)(?P<tail><!-- end -->)", re.DOTALL
)
_FENCE = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+?) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
_NUMBER = re.compile(r"\d*\.?\d+")


@dataclass(frozen=True)
class Block:
    """A part that is printed by the product: what prints it, with which settings, and what stood there last."""

    kind: str
    settings: Mapping[str, Any]
    content: str

    @property
    def slow(self) -> bool:
        """Whether making it again takes long, or data that cannot be shipped: no test does."""
        return bool(self.settings.get("slow", False))


@dataclass(frozen=True)
class Fence:
    """A fenced part: its language, its text, and why it is not run with the page, empty where it is."""

    language: str
    text: str
    reason: str


def blocks(page: str) -> list[Block]:
    """The generated parts of a page, in order.

    Examples:
        >>> [found] = blocks("<!-- generated: table {run: quickstart} -->\\n| a |\\n<!-- end -->")
        >>> found.kind, found.settings, found.content
        ('table', {'run': 'quickstart'}, '| a |\\n')
    """
    return [_block(match) for match in _BLOCK.finditer(page)]


def rewritten(page: str, content: Callable[[Block], str]) -> str:
    """The page with what `content` gives for each of its generated parts."""

    def replaced(match: re.Match[str]) -> str:
        text = content(_block(match)).strip("\n")
        return f"{match['head']}{text}\n{match['tail']}"

    return _BLOCK.sub(replaced, page)


def fences(page: str) -> list[Fence]:
    """The fenced parts of a page that no command has printed, in order.

    Examples:
        >>> fences("```sh\\nfederation list\\n```")
        [Fence(language='sh', text='federation list\\n', reason='')]
    """
    written = _BLOCK.sub("", page)
    return [Fence(match["language"], match["text"], match["reason"] or "") for match in _FENCE.finditer(written)]


def commands(fence: Fence) -> list[str]:
    """The command lines of a fence `sh`, without comments; a line that ends in a backslash goes on.

    Examples:
        >>> commands(Fence("sh", "federation list   # all\\nfederation run \\\\\\n  my.yaml\\n", ""))
        ['federation list', 'federation run    my.yaml']
    """
    lines = fence.text.replace("\\\n", " ").splitlines()
    return [command for line in lines if (command := re.sub(r"(^|\s)#.*", "", line).strip())]


def differ(old: str, new: str, tolerance: float) -> bool:
    """Whether two texts differ in more than spaces, or in numbers by more than the tolerance (absolute and relative).

    Examples:
        >>> differ("| .84 |", "|  .86 |", 0.05), differ("| .84 |", "| .96 |", 0.05)
        (False, True)
    """
    words, others = ("".join(_NUMBER.sub("#", text).split()) for text in (old, new))
    numbers = zip(_NUMBER.findall(old), _NUMBER.findall(new), strict=False)
    return words != others or any(
        abs(float(one) - float(other)) > tolerance * (1 + abs(float(one))) for one, other in numbers
    )


def _block(match: re.Match[str]) -> Block:
    return Block(match["kind"], yaml.safe_load(match["settings"]) or {}, match["content"])
