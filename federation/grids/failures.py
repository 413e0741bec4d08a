"""Which parties could not be counted, and why: one line per cause, with how often it occurred."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

_LONGEST_CAUSE = 200
_NAMED = re.compile(r"\bparty \d+\b")


class Failures:
    """The first cause of each failed party.

    `verbose` keeps the texts of causes, which in a simulation help and in a deployment could quote what a party holds.

    Examples:
        >>> failures = Failures(verbose=True)
        >>> failures.add([1, 2], "dropped out")
        >>> failures.add([2], "too late")
        >>> failures.causes()
        {'dropped out': 2}
    """

    def __init__(self, verbose: bool) -> None:
        self._verbose = verbose
        self._causes: dict[int, str] = {}

    def add(self, parties: Iterable[int], cause: str) -> None:
        """These parties failed for this cause, unless they failed before."""
        text = " ".join(cause.split())[:_LONGEST_CAUSE] if self._verbose else "no usable answer"
        for party in parties:
            self._causes.setdefault(party, text)

    def causes(self) -> dict[str, int]:
        """Number of parties by cause, the most frequent first; what names single parties counts as one cause."""
        texts: defaultdict[str, list[str]] = defaultdict(list)
        for text in self._causes.values():
            texts[_NAMED.sub("a party", text)].append(text)
        counts = {(same[0] if len(same) == 1 else common): len(same) for common, same in texts.items()}
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def describe(causes: Mapping[str, int], most: int = 3) -> str:
    """The most frequent causes on one line: `30 x dropped out; 7 x no rows; 5 for other reasons`.

    Examples:
        >>> describe({"dropped out": 30, "no rows": 7, "disk full": 3, "no memory": 2}, most=2)
        '30 x dropped out; 7 x no rows; 5 for other reasons'
    """
    listed = Counter(causes).most_common(most)
    texts = [f"{count} x {cause}" for cause, count in listed]
    if rest := sum(causes.values()) - sum(count for _, count in listed):
        texts.append(f"{rest} for other reasons")
    return "; ".join(texts)
