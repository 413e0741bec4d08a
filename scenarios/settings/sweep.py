"""A scenario's sweeps expanded: to worlds with scalars only, and to the variants that each world releases."""

import hashlib
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from federation.contract.trust import COLLUDING
from scenarios.data.catalogue import is_file_name
from scenarios.settings import parties as division
from scenarios.settings.parties import LOGISTIC, label
from scenarios.settings.protocol_options import BASELINES, default_kind, is_default, variant_name, without_noise
from scenarios.settings.schema import Scenario
from scenarios.settings.sections import Targets
from scenarios.settings.values import Section, swept_keys
from scenarios.settings.words import PERIOD


@dataclass(frozen=True)
class WorldSetting:
    """One point of the sweep: the swept columns' values, and the scenario with one value for each."""

    swept: Mapping[str, Any]
    scenario: Scenario


@dataclass(frozen=True)
class Variant:
    """A protocol with one value for every option; `swept` holds the columns of the options that were swept.

    `default` marks the variant that a user gets without choosing: the first listed kind that is no baseline,
    with all its defaults. At most one variant of a scenario is it. `key` is its automatic name, which keys its noise,
    so that what it is called changes no draw.
    """

    name: str
    kind: str
    options: Mapping[str, Any]
    swept: Mapping[str, Any]
    default: bool
    key: str = ""


_Path = tuple[str, ...]
_UNSAID: dict[str, Any] = dict(
    dropout=0,
    colluding=COLLUDING,
    bags=1,
    common_bags=False,
    positive=None,
    person=None,
    rows_per_person=1,
    range=None,
    outside="refuse",
    drop=[],
    time=None,
)


def expand(scenario: Scenario) -> list[WorldSetting]:
    """Every combination of the values that `data` and `parties` sweep; the last key changes fastest.

    Examples:
        >>> from scenarios.settings.schema import resolve
        >>> swept = resolve("quickstart", ["parties.count=[10, 20]", "parties.dropout=[0, 0.1]"])
        >>> [list(point.swept.values()) for point in expand(swept)]
        [[10, 0.0], [10, 0.1], [20, 0.0], [20, 0.1]]
    """
    axes = _axes(scenario)
    settings = []
    for values in itertools.product(*axes.values()):
        swept: dict[str, Any] = {}
        point = scenario
        for path, value in zip(axes, values, strict=True):
            swept[_column(path)] = _cell(path[-1], value)
            point = _replaced(point, path, value)
        settings.append(WorldSetting(swept, point))
    return settings


def swept_columns(scenario: Scenario) -> list[str]:
    """Dotted names of all swept keys, worlds first, then `period`, then `protocols.OPTION`: the columns of the results.

    Examples:
        >>> from scenarios.settings.schema import resolve
        >>> swept_columns(resolve("quickstart", ["parties.count=[10, 20]", "protocols.0.noise=[pure, off]"]))
        ['parties.count', 'protocols.noise']
    """
    periods = [] if scenario.data.time is None else [PERIOD]
    options = [f"protocols.{option}" for protocol in scenario.protocols for option in protocol.sweeps]
    return list(dict.fromkeys([*map(_column, _axes(scenario)), *periods, *options]))


def variants(scenario: Scenario) -> list[Variant]:
    """The variants of a scenario in the order of its protocols; baselines are variants without options.

    Examples:
        >>> from scenarios.settings.schema import resolve
        >>> [variant.name for variant in variants(resolve("quickstart"))][-4:]
        ['pooled', 'individual', 'constant', 'noise_free']
    """
    first = default_kind(scenario.protocols)
    return [
        Variant(
            name=protocol.named(options),
            kind=protocol.kind,
            options=options,
            swept={f"protocols.{option}": value for option, value in swept.items()},
            default=protocol.kind == first and is_default(protocol.kind, options, scenario.trust),
            key=variant_name(protocol.kind, options),
        )
        for protocol in scenario.protocols
        for options, swept in protocol.choices()
    ]


def releases(variant: Variant, scenario: Scenario) -> int:
    """How many models one world releases of a variant: none of a baseline, a single one with noise off.

    Examples:
        >>> from scenarios.settings.schema import resolve
        >>> scenario = resolve("quickstart")  # 5 epsilons, 10 noise draws of each
        >>> [releases(variant, scenario) for variant in variants(scenario)]
        [50, 50, 50, 50, 0, 0, 0, 0]
    """
    if variant.kind in BASELINES:
        return 0
    if without_noise(variant.kind, variant.options):
        return 1
    return len(scenario.privacy.epsilon) * scenario.trials.noise


def world_key(setting: WorldSetting, split: int, digest: str | None = None) -> str:
    """16 hexadecimal digits for the parties and rows of one world; they key its noise.

    Neither the protocols beside a variant, the target sets nor the engine change it. `digest` identifies the contents
    of the files of data and public rows and stands for their places: changed data must not share noise, and a moved
    file must not change results.
    """
    plain = setting.scenario.model_dump(mode="json", include={"data", "parties", "seed"})
    data, parties = plain["data"], plain["parties"]
    del data["targets"]
    # A world where everybody answers has the noise of one that says nothing of it; so with persons, bags, real labels.
    for section in (data, parties):
        for key in section.keys() & _UNSAID.keys():
            if section[key] == _UNSAID[key]:
                del section[key]
    for key in ("alike", "robust"):  # which say what the aggregator does with answers, and not who gives which
        del parties[key]
    if not parties["hostile"] or not parties["hostile"]["fraction"]:
        del parties["hostile"]
    if digest is not None:
        data["source"] = digest
        if is_file_name(data["auxiliary"]):
            del data["auxiliary"]
    if (period := setting.swept.get(PERIOD)) is not None:  # releases of different rows must not share noise
        trials = setting.scenario.trials.model_dump(mode="json", include={"periods", "window"})
        plain |= {**trials, PERIOD: period}
    return _short_hash({**plain, "split": split})


def cell_id(setting: WorldSetting, split: int, digest: str | None = None) -> str:
    """16 hexadecimal digits for all that one world measures: its parties and rows, releases and noise draws."""
    plain = setting.scenario.model_dump(mode="json", include={"protocols", "privacy"})
    hostile = setting.scenario.parties.hostile
    if hostile is not None:  # even where nobody is: the results of a sweep name the kind
        plain["hostile"] = hostile.model_dump(mode="json")
    targets = setting.scenario.data.targets
    if targets not in (None, Targets()):
        plain["targets"] = targets.model_dump(mode="json")
    if (setting.scenario.parties.robust, setting.scenario.parties.alike) != (True, False):
        plain["answers"] = [setting.scenario.parties.robust, setting.scenario.parties.alike]
    return _short_hash({**plain, "noise": setting.scenario.trials.noise, "world": world_key(setting, split, digest)})


def _short_hash(plain: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]


def _axes(scenario: Scenario) -> dict[_Path, tuple[Any, ...]]:
    """The swept values of `data` and `parties`, by the keys that lead to them."""
    return {**_axes_of(scenario.data, "data"), **_axes_of(scenario.parties, "parties")}


def _axes_of(container: Section | Mapping[str, Any], *path: str) -> dict[_Path, tuple[Any, ...]]:
    """What a section or mapping sweeps itself, then what those in it sweep."""
    entries = dict(container)
    keys = list(entries) if isinstance(container, Mapping) else swept_keys(type(container))
    found = {(*path, key): entries[key] for key in keys if isinstance(entries[key], tuple)}
    for key, value in entries.items():
        if isinstance(value, Section | Mapping):
            found |= _axes_of(value, *path, key)
    return found


def _column(path: _Path) -> str:
    return ".".join(path).replace(".classifier.parameters.", f".classifier.{LOGISTIC}.")


def _replaced(container: Any, path: tuple[str, ...], value: Any) -> Any:
    """A section or mapping with another value at the end of `path`."""
    key, *rest = path
    if isinstance(container, Mapping):
        return {**container, key: _replaced(container[key], tuple(rest), value) if rest else value}
    return container.model_copy(update={key: _replaced(getattr(container, key), tuple(rest), value) if rest else value})


def _cell(key: str, value: Any) -> Any:
    """A swept value as one cell of a table."""
    if key in ("partition", "bags", "auxiliary"):
        return division.division_label(value)
    return label(value) if key == "classifier" else value
