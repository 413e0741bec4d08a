"""A scenario's sweeps expanded: to worlds with scalars only, and to the variants that each world releases."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scenarios.classifier import LOGISTIC, REGULARISATION, label, swept_regularisations
from scenarios.protocol_options import BASELINES, Protocol, is_default, variant_name
from scenarios.schema import Scenario, swept_keys


@dataclass(frozen=True)
class WorldSetting:
    """One point of the sweep: the swept columns' values, and the scenario with one value for each."""

    swept: Mapping[str, Any]
    scenario: Scenario


@dataclass(frozen=True)
class Variant:
    """A protocol with one value for every option; `swept` holds the columns of the options that were swept.

    `default` marks the variant that a user gets without choosing: the first listed kind that is no baseline,
    with all its defaults. At most one variant of a scenario is it.
    """

    name: str
    kind: str
    options: Mapping[str, Any]
    swept: Mapping[str, Any]
    default: bool


@dataclass(frozen=True)
class _Axis:
    """A swept key of `data` or `parties`: where it is, and (value, table cell) of each point."""

    column: str
    section: str
    key: str
    points: tuple[tuple[Any, Any], ...]


def expand(scenario: Scenario) -> list[WorldSetting]:
    """Every combination of the values that `data` and `parties` sweep; the last key changes fastest."""
    axes = list(_axes(scenario))
    settings = []
    for points in itertools.product(*(axis.points for axis in axes)):
        swept: dict[str, Any] = {}
        changes: dict[str, dict[str, Any]] = {"data": {}, "parties": {}}
        for axis, (value, text) in zip(axes, points, strict=True):
            swept[axis.column] = text
            changes[axis.section][axis.key] = value
        sections = {name: getattr(scenario, name).model_copy(update=new) for name, new in changes.items()}
        settings.append(WorldSetting(swept, scenario.model_copy(update=sections)))
    return settings


def swept_columns(scenario: Scenario) -> list[str]:
    """Dotted names of all swept keys, worlds first, then `protocols.OPTION`: the columns of the results."""
    options = [_column(option) for protocol in scenario.protocols for option in protocol.sweeps]
    return list(dict.fromkeys([*(axis.column for axis in _axes(scenario)), *options]))


def variants(scenario: Scenario) -> list[Variant]:
    """The variants of a scenario in the order of its protocols; baselines are variants without options."""
    first = next((protocol.kind for protocol in scenario.protocols if protocol.kind not in BASELINES), None)
    return [variant for protocol in scenario.protocols for variant in _variants(protocol, first)]


def releases(variant: Variant, scenario: Scenario) -> int:
    """How many models one world releases of a variant: none of a baseline, a single one with noise off."""
    if variant.kind in BASELINES:
        return 0
    if variant.options.get("noise") == "off":
        return 1
    return len(scenario.privacy.epsilon) * scenario.trials.noise


def world_key(setting: WorldSetting, split: int, digest: str | None = None) -> str:
    """16 hexadecimal digits for the parties and rows of one world; they key its noise.

    Neither the protocols beside a variant nor the engine change it. `digest` identifies the contents of the data's
    file and stands for its place: changed data must not share noise, and a moved file must not change results.
    """
    plain = setting.scenario.model_dump(mode="json", include={"data", "parties", "seed"})
    if digest is not None:
        plain["data"]["source"] = digest
    return _short_hash({**plain, "split": split})


def cell_id(setting: WorldSetting, split: int, digest: str | None = None) -> str:
    """16 hexadecimal digits for all that one world measures: its parties and rows, releases and noise draws."""
    plain = setting.scenario.model_dump(mode="json", include={"protocols", "privacy"})
    return _short_hash({**plain, "noise": setting.scenario.trials.noise, "world": world_key(setting, split, digest)})


def _short_hash(plain: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]


def _variants(protocol: Protocol, default_kind: str | None) -> Iterator[Variant]:
    for options, swept in protocol.choices():
        yield Variant(
            name=variant_name(protocol.kind, options),
            kind=protocol.kind,
            options=options,
            swept={_column(option): value for option, value in swept.items()},
            default=protocol.kind == default_kind and is_default(protocol.kind, options),
        )


def _column(option: str) -> str:
    return f"protocols.{option}"


def _axes(scenario: Scenario) -> Iterator[_Axis]:
    for name in ("data", "parties"):
        section = getattr(scenario, name)
        for key in swept_keys(type(section)):
            values = getattr(section, key)
            if isinstance(values, tuple):
                yield _Axis(f"{name}.{key}", name, key, tuple((value, _cell(value)) for value in values))
    classifier = scenario.parties.classifier
    if isinstance(classifier, Mapping) and swept_regularisations(classifier):
        values = swept_regularisations(classifier)
        points = tuple(({"name": LOGISTIC, "parameters": {REGULARISATION: value}}, value) for value in values)
        yield _Axis(f"parties.classifier.{LOGISTIC}.{REGULARISATION}", "parties", "classifier", points)


def _cell(value: Any) -> Any:
    """A swept value as one cell of a table."""
    if not isinstance(value, Mapping):
        return value
    return f"by={value['by']}" if "by" in value else label(value)
