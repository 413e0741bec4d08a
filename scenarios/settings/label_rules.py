"""Which labels a scenario's data must have for the task of its protocols, and what real labels leave no room for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from federation.contract.errors import InputError
from scenarios.data.catalogue import NO_RANGE, entry, names
from scenarios.settings.partition_entry import BY, partition_kind
from scenarios.settings.protocol_options import CLASSIFYING_BASELINES, default_kind, requires
from scenarios.settings.values import all_values
from scenarios.simulated.partition import BY_CLASS

if TYPE_CHECKING:
    from scenarios.data.tables import Table
    from scenarios.settings.schema import Scenario
    from scenarios.settings.yaml_rules import KeyPath


def unsuited(scenario: Scenario) -> Iterator[tuple[KeyPath, str]]:
    """(key path, why) of what does not go together: the task of the protocols, the labels of the data, the rest.

    Baselines alone have no task: the data decides. One's own file has real labels where a range is declared.
    """
    data = scenario.data
    first, wanted = default_kind(scenario.protocols), are_real(scenario)
    real = {source: _has_real_labels(source, data.range is not None) for source in all_values(data.source)}
    local = [protocol.kind for protocol in scenario.protocols if requires(protocol.kind).single_rows]
    counted = first is not None and requires(first).bags
    yield from _labels_made_public(scenario, wanted or counted or bool(local))
    if (local or wanted) and any(person is not None for person in all_values(data.person)):
        single = local[0] if local else first or "a baseline"
        yield ("data", "person"), f"is for protecting persons, but {single} knows single rows only; remove it"
    if wanted:
        yield from _unsuited_to_real_labels(scenario)
    elif data.range is not None:
        yield ("data", "range"), f"is for real labels, which {first or 'these data sets'} cannot use; remove it"
    elif data.outside != "refuse":
        yield ("data", "outside"), "is for real labels outside data.range; remove it"
    for source, found in real.items():
        if entry(source) is not None and found != wanted:
            others = ", ".join(name for name in names() if _has_real_labels(name, False) == wanted)
            labels = ("real labels", "classes") if found else ("classes", "real labels")
            needs = f"{first} needs {labels[1]}" if first else "other data here has classes"
            yield ("data", "source"), f"'{source}' has {labels[0]}, but {needs}; choose one of {others} or an own file"
        elif wanted and data.range is None and not _documents_range(source):
            yield ("data", "range"), f"missing; {NO_RANGE}"


def are_real(scenario: Scenario) -> bool:
    """Whether the labels have to be real numbers, by the protocols, or by the data where there are baselines only."""
    data, first = scenario.data, default_kind(scenario.protocols)
    if first is not None:
        return requires(first).labels == "real"
    return all(_has_real_labels(source, data.range is not None) for source in all_values(data.source))


def require_two_classes(scenario: Scenario, table: Table) -> None:
    """Refuse protocols for two classes where the data has another number of them. Raises `InputError`."""
    kind = next((protocol.kind for protocol in scenario.protocols if requires(protocol.kind).two_classes), None)
    if kind is not None and len(table.classes) != 2:
        raise InputError(
            f"data.positive: missing; {kind} is for two classes, and '{table.name}' has {len(table.classes)}: name "
            "those that count as the positive one together, such as "
            f"[{', '.join(table.classes[1 : len(table.classes) // 2 + 1])}]"
        )


def _labels_made_public(scenario: Scenario, labels_protected: bool) -> Iterator[tuple[KeyPath, str]]:
    """The column of the labels where it would say who is in which party or bag, which is public, or who is who."""
    data, parties = scenario.data, scenario.parties
    labels = {label for label in all_values(data.label) if label is not None}
    if labels & set(all_values(data.person)):
        yield ("data", "person"), "names the column of the labels; choose the column that says whose row it is"
    for key, entries in (("partition", parties.partition), ("bags", parties.bags)):
        named = {entry[BY] for entry in all_values(entries) if isinstance(entry, Mapping) and BY in entry}
        if labels_protected and labels & named:
            text = (
                "names the column of the labels; who is in which party and bag is public, so it would publish the "
                "labels: choose a column that is known without them"
            )
            yield ("parties", key), text


def _unsuited_to_real_labels(scenario: Scenario) -> Iterator[tuple[KeyPath, str]]:
    """What needs classes."""
    data = scenario.data
    if data.classes is not None:
        yield ("data", "classes"), "names classes, but the labels are real numbers; remove it"
    if data.positive is not None:
        yield ("data", "positive"), "names classes, but the labels are real numbers; remove it"
    if data.outside != "refuse" and data.range is None:
        yield ("data", "outside"), "needs data.range: a documented range holds all labels"
    for kind in map(partition_kind, all_values(scenario.parties.partition)):
        if kind in BY_CLASS:
            text = f"{kind} deals rows by class, but the labels are real numbers; use iid, quantity or by"
            yield ("parties", "partition"), text
    for position, protocol in enumerate(scenario.protocols):
        if does := CLASSIFYING_BASELINES.get(protocol.kind):
            text = f"the baseline {protocol.kind} {does}, but the labels are real numbers; remove it"
            yield ("protocols", position), text


def _has_real_labels(source: str, ranged: bool) -> bool:
    known = entry(source)
    return ranged if known is None else known.regression


def _documents_range(source: str) -> bool:
    known = entry(source)
    return known is not None and known.label_range is not None
