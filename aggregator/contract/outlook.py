"""What public numbers say against expecting much of a release, told before anybody is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

USEFUL = 4.0  # signal over noise from which a release is hardly ever worse than a constant answer
_HOPELESS = 1.0


@dataclass(frozen=True)
class Outlook:
    """The largest signal that the declared parties can give over the expected noise, and how many parties would do."""

    signal_to_noise: float
    parties_needed: int


def told(outlooks: Mapping[str, Mapping[float, Outlook]], parties: int) -> Iterator[str]:
    """One line for the variants of which the same is to be said; `outlooks` by variant and epsilon.

    Examples:
        >>> few = {0.1: Outlook(0.4, 1000), 1.0: Outlook(3.0, 100)}
        >>> print(*told({"soft_vote": few, "parameter_average": few}, parties=70))
        soft_vote, parameter_average: at epsilon 0.1 the noise is louder than all that 70 parties can say (signal to
        noise 0.4): it may hide most of that, and a constant answer may be as good; to count on more it takes about
        1000 parties; at epsilon 1 a constant answer may be as good (signal to noise 3); to count on more it takes about
        100 parties
    """
    alike: dict[tuple[tuple[float, Outlook], ...], list[str]] = {}
    for variant, by_epsilon in outlooks.items():
        alike.setdefault(tuple(by_epsilon.items()), []).append(variant)
    for found, variants in alike.items():
        few = [(epsilon, one) for epsilon, one in found if one.signal_to_noise < _HOPELESS]
        some = [(epsilon, one) for epsilon, one in found if _HOPELESS <= one.signal_to_noise < USEFUL]
        lines = []
        if few:
            louder = f"the noise is louder than all that {parties} parties can say ({_ratios(few)})"
            feared = "it may hide most of that, and a constant answer may be as good"
            lines.append(f"at epsilon {_epsilons(few)} {louder}: {feared}; {_needed(few)}")
        if some:
            equal = f"a constant answer may be as good ({_ratios(some)})"
            lines.append(f"at epsilon {_epsilons(some)} {equal}; {_needed(some)}")
        if lines:
            yield f"{', '.join(variants)}: {'; '.join(lines)}"


def _epsilons(found: Sequence[tuple[float, Outlook]]) -> str:
    return ", ".join(f"{epsilon:g}" for epsilon, _ in found)


def _ratios(found: Sequence[tuple[float, Outlook]]) -> str:
    return f"signal to noise {', '.join(f'{one.signal_to_noise:.2g}' for _, one in found)}"


def _needed(found: Sequence[tuple[float, Outlook]]) -> str:
    return f"to count on more it takes about {', '.join(str(one.parties_needed) for _, one in found)} parties"
