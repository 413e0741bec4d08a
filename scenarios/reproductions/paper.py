"""Declarations of a paper for its reproduction: tables and figures, how each is measured, and the printed values.

A paper is a folder of `scenarios.papers` with a `paper.yaml`, whose keys are the fields of `Paper`, `Item` and so on.
In place of a function, {call: MODULE:FUNCTION} names a function of one of the folder's modules. Further keys are its
arguments. Printed values are in scenarios/papers/published.csv, one line per number.

The values of an item (`Kept`) are stored as a small table, beside a record of how they were made.
"""

import csv
import functools
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property, partial
from importlib.resources import files
from io import StringIO
from operator import sub
from pathlib import Path
from typing import Any, Literal

from federation.contract.errors import InputError, nearest_name, refusing, writing
from federation.contract.files import is_file, read_object
from federation.contract.plugins import Reference
from scenarios.runs.directory import replaced
from scenarios.settings.loader import parse

Role = Literal["published", "default"]  # ours as the paper has it, or our default at the same guarantee
EXACT = -1  # the split of what was computed exactly
Kind = Literal["wrong bound", "unpublished setting", "other data", "other choice", "misprint"]
_DECLARATION, _CALL = "paper.yaml", "call"
_STRICT = {"extra": "forbid"}  # for pydantic: a key that is no field is a mistake


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


def both(setting: str, series: str, x: str, split: int, published: float, default: float) -> Iterator[Observation]:
    """Yield one value of ours in either role."""
    yield Observation(setting, series, "published", x, split, published)
    yield Observation(setting, series, "default", x, split, default)


@dataclass(frozen=True)
class Pick:
    """Which values of a run stand for a series: those of a variant and a metric of results.csv.

    `epsilon` is the one that is aimed at or claimed, empty where there is only one, or none; "1/{x}" on an axis of
    inverse epsilons, where 1/0 is that of what has no noise. `where` are swept settings. In all texts `{x}` is the
    place on the item's axis. With `beside` another value is read in each split, and the two make one by `of`: their
    difference unless said otherwise.
    """

    __pydantic_config__ = _STRICT
    variant: str
    metric: str = "accuracy"
    epsilon: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    beside: "Pick | None" = None
    of: Callable[[float, float], float] = sub


@dataclass(frozen=True)
class Series:
    """A column of a table, or a curve: its name in published.csv, and our two answers to it.

    Where a curve's places are measured by several variants, a series for each of them bears its name.

    `published` is ours as the paper has it, `default` our own choice at the same guarantee, or the nearest that is
    honest; None where there is none. `meaning` says in a sentence what they are, and whom they protect.
    """

    __pydantic_config__ = _STRICT
    name: str
    published: Pick | None = None
    default: Pick | None = None
    meaning: str = ""

    def picks(self) -> dict[Role, Pick]:
        """Return the picks that there are, by role."""
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

    __pydantic_config__ = _STRICT
    setting: str
    scenario: str
    overrides: tuple[str, ...] = ()
    quick: tuple[str, ...] | None = ()
    substitute: str = ""
    missing: "Part | None" = None
    check: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper: in these settings (all, if none is named) one series is `larger` than another.

    It is tested in every setting on ours as published, over all places of the axis together, or those of `at`, with
    the splits as pairs. `against` and `from_at` are the setting and the places of the `smaller` series, where these
    are others. `seen` False: the paper sees no difference.
    """

    __pydantic_config__ = _STRICT
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

    __pydantic_config__ = _STRICT
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

    __pydantic_config__ = _STRICT
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
        """The settings of the parts, in order."""
        return list(dict.fromkeys(part.setting for part in self.parts))


@dataclass(frozen=True)
class Paper:
    """A paper with its items; `about` says in a few sentences what it does, and what is known of it since."""

    __pydantic_config__ = _STRICT
    name: str
    citation: str
    about: str
    items: tuple[Item, ...]


def names() -> list[str]:
    """Names of papers, sorted; nothing of them is imported.

    Examples:
        >>> "lacombe" in names()
        True
    """
    folders = (files("scenarios") / "papers").iterdir()
    return sorted(each.name for each in folders if (each / _DECLARATION).is_file())


def paper(name: str) -> Paper:
    """A paper by its name. Raises `InputError`, which lists those that there are."""
    known = names()
    if name not in known:
        raise InputError(f"there is no paper '{name}'; there are {', '.join(known)}{nearest_name(name, known)}")
    from pydantic import TypeAdapter

    text = (files("scenarios") / "papers" / name / _DECLARATION).read_text(encoding="utf-8")
    plain, _ = parse(text, f"papers/{name}/{_DECLARATION}")
    return TypeAdapter(Paper).validate_python({"name": name, **_with_functions(plain, f"scenarios.papers.{name}")})


def _with_functions(plain: Any, package: str) -> Any:
    """Put a function wherever {call: MODULE:FUNCTION} stands; its module is imported when it is called."""
    if isinstance(plain, list):
        return [_with_functions(each, package) for each in plain]
    if not isinstance(plain, dict):
        return plain
    if _CALL in plain:
        return partial(_called, f"{package}.{plain[_CALL]}", {key: plain[key] for key in plain if key != _CALL})
    return {key: _with_functions(each, package) for key, each in plain.items()}


def _called(target: str, fixed: Mapping[str, Any], *given: Any) -> Any:
    return Reference(target).load()(*given, **fixed)


def items(paper: Paper, only: Collection[str]) -> list[Item]:
    """The items of a paper of these names, or all where none is given. Raises `InputError`, which lists them."""
    known = [item.name for item in paper.items]
    for name in only:
        if name not in known:
            raise InputError(f"--only '{name}' is none of {', '.join(known)}{nearest_name(name, known)}")
    return [item for item in paper.items if not only or item.name in only]


_COLUMNS = tuple(each.name for each in fields(Observation))
_REMEDY = "name another --out, or delete it"


@dataclass(frozen=True)
class Record:
    """How an item was measured: the command, the version, and for every setting its seed, number of splits and data.

    `data` says what each setting was measured on, where that is not the paper's own; `missing` why some were not.
    """

    command: str
    version: str
    quick: bool
    seeds: Mapping[str, int] = field(default_factory=dict)
    splits: Mapping[str, int] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Kept:
    """The values of an item, and their record."""

    observations: Sequence[Observation]
    record: Record

    def by_split(self, setting: str, series: str, role: str, x: str) -> dict[int, float]:
        """The values of one cell; none where it was not measured."""
        return self._cells.get((setting, series, role, x), {})

    @cached_property
    def _cells(self) -> dict[tuple[str, str, str, str], dict[int, float]]:
        found: dict[tuple[str, str, str, str], dict[int, float]] = {}
        for one in self.observations:
            found.setdefault((one.setting, one.series, one.role, one.x), {})[one.split] = one.value
        return found


def table(folder: Path, paper: Paper, item: Item) -> Path:
    """Where the values of an item are: PAPER/ITEM.csv, with its record as ITEM.json beside it."""
    return folder / paper.name / f"{item.name}.csv"


def keep(folder: Path, paper: Paper, item: Item, found: Kept) -> None:
    """Write values with six digits, and the record, each file whole or not at all.

    Raises `InputError` where that is not possible.
    """
    path = table(folder, paper, item)
    values = StringIO()
    writer = csv.writer(values, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows(_cells(found.observations))
    with writing(f"to {path.parent}", "name another --out"):
        path.parent.mkdir(parents=True, exist_ok=True)
        replaced(path, values.getvalue())
        replaced(path.with_suffix(".json"), json.dumps(asdict(found.record), indent=2) + "\n")


def _cells(observations: Iterable[Observation]) -> Iterable[tuple[object, ...]]:
    for one in observations:
        yield one.setting, one.series, one.role, one.x, one.split, f"{one.value:.6g}"


def read(folder: Path, paper: Paper, item: Item) -> Kept | None:
    """What was kept of an item; None where nothing was. Raises `InputError` for files of another content."""
    path = table(folder, paper, item)
    if not is_file(path):
        return None
    with refusing(f"{path} and the .json beside it are not what `federation reproduce` writes; {_REMEDY}"):
        record = Record(**read_object(path.with_suffix(".json"), _REMEDY))
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        observations = [
            Observation(**{**row, "split": int(row["split"]), "value": float(row["value"])})  # type: ignore[arg-type]
            for row in rows
        ]
    if not observations:
        raise InputError(f"{path} holds no values; {_REMEDY}")
    return Kept(observations, record)


COLUMNS = ("paper", "item", "setting", "series", "x", "value", "plus_minus", "place")
Key = tuple[str, str, str]  # setting, series, x


@dataclass(frozen=True)
class Published:
    """A number as printed, in our units; `half` is half of a unit of its last digit, and `place` where it stands.

    `plus_minus` is what stands behind its plus-minus sign, None where nothing does.
    """

    value: float
    half: float
    plus_minus: float | None
    place: str


def published(paper: str, item: str) -> dict[Key, Published]:
    """The numbers of an item by setting, series and place on the axis."""
    found = {}
    for row in _rows():
        if (row["paper"], row["item"]) == (paper, item):
            spread = float(row["plus_minus"]) if row["plus_minus"] else None
            key = (row["setting"], row["series"], row["x"])
            found[key] = Published(float(row["value"]), _half(row["value"]), spread, row["place"])
    return found


@functools.cache
def _rows() -> Iterable[dict[str, str]]:
    source = files("scenarios") / "papers" / "published.csv"
    return tuple(csv.DictReader(source.read_text(encoding="utf-8").splitlines()))


def _half(text: str) -> float:
    """Half of a unit of the last digit of a number.

    Examples:
        >>> _half("0.743"), _half("0.18"), _half("4.5e-2")
        (0.0005, 0.005, 0.0005)
    """
    digits, _, power = text.lower().partition("e")
    decimals = len(digits.partition(".")[2])
    return 0.5 * 10.0 ** (int(power or 0) - decimals)
