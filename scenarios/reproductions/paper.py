"""What is declared of a paper: its tables and figures, how each is measured, and what of ours stands for what of it.

Values that a paper prints are not here, but in scenarios/papers/published.csv.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import sub
from pathlib import Path
from typing import Literal

Role = Literal["published", "default"]  # ours as the paper has it, or our default at the same guarantee
EXACT = -1  # the split of what was computed exactly
Kind = Literal["wrong bound", "unpublished setting", "other data", "other choice", "misprint"]


@dataclass(frozen=True)
class Observation:
    """One value of ours: of a series in a setting at a place of the axis, in one split; its noise draws are averaged.

    What is computed exactly has the only split `EXACT`; what is simulated without a scenario numbers its repetitions.
    """

    setting: str
    series: str
    role: Role
    x: str
    split: int
    value: float


@dataclass(frozen=True)
class Pick:
    """Which values of a run stand for a series: those of a variant and a metric of results.csv.

    `epsilon` is the one that is aimed at or claimed, empty where there is only one, or none; "1/{x}" on an axis of
    inverse epsilons, where 1/0 is that of what has no noise. `where` are swept settings. In all texts `{x}` is the
    place on the item's axis. With `beside` another value is read in each split, and the two make one by `of`: their
    difference unless said otherwise.
    """

    variant: str
    metric: str = "accuracy"
    epsilon: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    beside: Pick | None = None
    of: Callable[[float, float], float] = sub


@dataclass(frozen=True)
class Series:
    """A column of a table, or a curve: its name in published.csv, and our two answers to it.

    Where a curve's places are measured by several variants, a series for each of them bears its name.

    `published` is ours as the paper has it, `default` our own choice at the same guarantee, or the nearest that is
    honest; None where there is none. `meaning` says in a sentence what they are, and whom they protect.
    """

    name: str
    published: Pick | None = None
    default: Pick | None = None
    meaning: str = ""

    def picks(self) -> dict[Role, Pick]:
        """Those that there are, by role."""
        known: dict[Role, Pick | None] = {"published": self.published, "default": self.default}
        return {role: pick for role, pick in known.items() if pick is not None}


@dataclass(frozen=True)
class Part:
    """A scenario whose runs measure one setting of an item, that is a row of a table or a panel of a figure.

    scenario: a file beside the paper's module, or the name of a library scenario.
    overrides: as of `--set`.
    quick: further ones of a quick run; None leaves the part out of it.
    substitute: what it is measured on, where that is not the paper's own data and settings; empty where it is.
    missing: the part that is measured where its data is not there; None leaves it out.
    check: overrides under which the tests measure it again, in seconds and on bundled data; None: they do not.
    """

    setting: str
    scenario: str
    overrides: tuple[str, ...] = ()
    quick: tuple[str, ...] | None = ()
    substitute: str = ""
    missing: Part | None = None
    check: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper: in these settings (all, if none is named) one series is `larger` than another.

    It is tested in every setting on ours as published, over all places of the axis together, or those of `at`, with
    the splits as pairs. `against` and `from_at` are the setting and the places of the `smaller` series, where these
    are others. `seen` False: the paper sees no difference.
    """

    says: str
    larger: str
    smaller: str
    settings: tuple[str, ...] = ()
    place: str = ""
    seen: bool = True
    at: tuple[str, ...] = ()
    against: str = ""
    from_at: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reason:
    """Why ours as published is not what the paper has, in some series and settings; all, where none is named.

    Every cell whose published value lies outside of our interval must have one, and every claim that does not hold.
    """

    kind: Kind
    text: str
    series: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    def covers(self, setting: str, *series: str) -> bool:
        """Whether it is about one of the series in this setting."""
        named = not self.series or any(name in self.series for name in series)
        return named and (not self.settings or setting in self.settings)


@dataclass(frozen=True)
class Item:
    """A table or figure: scenarios and what is read from their runs, or a function that computes our values.

    name: as of `--only`, such as table2.
    place: where it stands in the paper.
    metric: what its values are, as in results.csv; decides digits and bounds.
    axis: what a figure has along its axis, at the places `at`; a table has none.
    compute: gives our values without a run; told whether only quick ones are wanted, and the folder of data files.
    check: whether the tests compute quick ones again, in seconds and without data files.
    minutes: of one core, of a full and of a quick run; what says nothing takes seconds.
    """

    name: str
    title: str
    place: str
    parts: tuple[Part, ...] = ()
    series: tuple[Series, ...] = ()
    metric: str = "accuracy"
    axis: str = ""
    at: tuple[str, ...] = ("",)
    compute: Callable[[bool, Path | None], Iterable[Observation]] | None = None
    check: bool = False
    claims: tuple[Claim, ...] = ()
    reasons: tuple[Reason, ...] = ()
    about: str = ""
    minutes: tuple[float, float] = (0.1, 0.1)

    @property
    def settings(self) -> list[str]:
        """Those of its parts, in order."""
        return list(dict.fromkeys(part.setting for part in self.parts))


@dataclass(frozen=True)
class Paper:
    """A paper with its items; `about` says in a few sentences what it does, and what is known of it since."""

    name: str
    citation: str
    about: str
    items: tuple[Item, ...]
