"""A scenario's sweeps expanded: to worlds with scalars only, and to the variants that each world releases."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scenarios.settings import auxiliary_entry, partition_entry
from scenarios.settings.classifier import LOGISTIC, REGULARISATION, label, swept_regularisations
from scenarios.settings.protocol_options import (
    BASELINES,
    Protocol,
    default_kind,
    is_default,
    variant_name,
    without_noise,
)
from scenarios.settings.schema import Scenario, swept_keys
from scenarios.settings.section import Section
from scenarios.settings.target_sets import Targets


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
    """A swept value of `data` or `parties`: its column, the keys that lead to it, and its values."""

    column: str
    path: tuple[str, ...]
    values: tuple[Any, ...]


def expand(scenario: Scenario) -> list[WorldSetting]:
    """Every combination of the values that `data` and `parties` sweep; the last key changes fastest."""
    axes = list(_axes(scenario))
    settings = []
    for values in itertools.product(*(axis.values for axis in axes)):
        swept: dict[str, Any] = {}
        point = scenario
        for axis, value in zip(axes, values, strict=True):
            swept[axis.column] = _cell(axis.path[-1], value)
            point = _replaced(point, axis.path, value)
        settings.append(WorldSetting(swept, point))
    return settings


def swept_columns(scenario: Scenario) -> list[str]:
    """Dotted names of all swept keys, worlds first, then `protocols.OPTION`: the columns of the results."""
    options = [_column(option) for protocol in scenario.protocols for option in protocol.sweeps]
    return list(dict.fromkeys([*(axis.column for axis in _axes(scenario)), *options]))


def variants(scenario: Scenario) -> list[Variant]:
    """The variants of a scenario in the order of its protocols; baselines are variants without options."""
    first = default_kind(scenario.protocols)
    return [variant for protocol in scenario.protocols for variant in _variants(protocol, first)]


def releases(variant: Variant, scenario: Scenario) -> int:
    """How many models one world releases of a variant: none of a baseline, a single one with noise off."""
    if variant.kind in BASELINES:
        return 0
    if without_noise(variant.kind, variant.options):
        return 1
    return len(scenario.privacy.epsilon) * scenario.trials.noise


def world_key(setting: WorldSetting, split: int, digest: str | None = None) -> str:
    """16 hexadecimal digits for the parties and rows of one world; they key its noise.

    Neither the protocols beside a variant, the target sets nor the engine change it. `digest` identifies the contents
    of the data's file and stands for its place: changed data must not share noise, and a moved file must not change
    results.
    """
    plain = setting.scenario.model_dump(mode="json", include={"data", "parties", "seed"})
    data, parties = plain["data"], plain["parties"]
    del data["targets"]
    # A world where everybody answers has the noise of one that says nothing of it; so with persons, bags, real labels.
    for section, key, unsaid in (
        (parties, "dropout", 0),
        (parties, "bags", 1),
        (data, "positive", None),
        (data, "person", None),
        (data, "rows_per_person", 1),
        (data, "range", None),
        (data, "outside", "refuse"),
    ):
        if section[key] == unsaid:
            del section[key]
    if not parties["hostile"] or not parties["hostile"]["fraction"]:
        del parties["hostile"]
    if digest is not None:
        plain["data"]["source"] = digest
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
    data, parties = scenario.data, scenario.parties
    yield from _section_axes(data, "data")
    if data.targets is not None:
        yield from _section_axes(data.targets, "data", "targets")
    yield from _section_axes(parties, "parties")
    if isinstance(parties.partition, Mapping) and (skews := partition_entry.swept_skew(parties.partition)):
        kind = partition_entry.partition_kind(parties.partition)
        yield _Axis(f"parties.partition.{kind}", ("parties", "partition", kind), skews)
    if isinstance(parties.classifier, Mapping) and (values := swept_regularisations(parties.classifier)):
        path = ("parties", "classifier", "parameters", REGULARISATION)
        yield _Axis(f"parties.classifier.{LOGISTIC}.{REGULARISATION}", path, values)
    if parties.hostile is not None:
        yield from _section_axes(parties.hostile, "parties", "hostile")


def _section_axes(section: Section, *path: str) -> Iterator[_Axis]:
    for key in swept_keys(type(section)):
        values = getattr(section, key)
        if isinstance(values, tuple):
            yield _Axis(".".join((*path, key)), (*path, key), values)


def _replaced(container: Any, path: tuple[str, ...], value: Any) -> Any:
    """A section or mapping with another value at the end of `path`."""
    key, *rest = path
    if isinstance(container, Mapping):
        return {**container, key: _replaced(container[key], tuple(rest), value) if rest else value}
    return container.model_copy(update={key: _replaced(getattr(container, key), tuple(rest), value) if rest else value})


def _cell(key: str, value: Any) -> Any:
    """A swept value as one cell of a table."""
    if key == "partition":
        return partition_entry.label(value)
    if key == "bags":
        return partition_entry.bags_label(value)
    if key == "auxiliary":
        return auxiliary_entry.label(value)
    return label(value) if key == "classifier" else value
