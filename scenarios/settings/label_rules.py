"""Which labels a scenario's data must have for the task of its protocols, and what real labels leave no room for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from aggregator.contract import registry
from federation.contract.errors import InputError
from scenarios.data.catalogue import NO_RANGE, entry, names
from scenarios.data.tables import Table
from scenarios.settings.division import partition_kind
from scenarios.settings.protocol_options import CLASSIFYING_BASELINES, Protocol, default_kind, requires, task
from scenarios.settings.sections import Data, Parties
from scenarios.settings.values import all_values
from scenarios.settings.words import BY, BY_CLASS
from scenarios.settings.yaml_rules import KeyPath


def unsuited(data: Data, parties: Parties, protocols: Sequence[Protocol]) -> Iterator[tuple[KeyPath, str]]:
    """(key path, why) of what does not go together: the task of the protocols, the labels of the data, the rest.

    Baselines alone have no task: the data decides. One's own file has real labels where a range is declared.
    """
    first, wanted = default_kind(protocols), are_real(data, protocols)
    real = {source: _has_real_labels(source, data.range is not None) for source in all_values(data.source)}
    local = [protocol.kind for protocol in protocols if requires(protocol.kind).single_rows]
    counted = first is not None and requires(first).bags
    yield from _labels_made_public(data, parties, wanted or counted or bool(local))
    if (local or wanted) and any(person is not None for person in all_values(data.person)):
        single = local[0] if local else first or "a baseline"
        yield ("data", "person"), f"is for protecting persons, but {single} knows single rows only; remove it"
    if wanted:
        yield from _unsuited_to_real_labels(data, parties, protocols)
    elif data.range is not None:
        yield ("data", "range"), f"is for real labels, which {first or 'these data sets'} cannot use; remove it"
    elif data.outside != "refuse":
        yield ("data", "outside"), "is for real labels outside data.range; remove it"
    for source, found in real.items():
        known = entry(source)
        if known is not None and found != wanted:
            others = ", ".join(name for name in names() if _has_real_labels(name, False) == wanted)
            labels = ("real labels", "classes") if found else ("classes", "real labels")
            needs = f"{first} needs {labels[1]}" if first else "other data here has classes"
            yield ("data", "source"), f"'{source}' has {labels[0]}, but {needs}; choose one of {others} or an own file"
        elif wanted and data.range is None and (known is None or known.label_range is None):
            yield ("data", "range"), f"missing; {NO_RANGE}"


def are_real(data: Data, protocols: Sequence[Protocol]) -> bool:
    """Whether the labels have to be real numbers, by the protocols, or by the data where there are baselines only."""
    first = default_kind(protocols)
    if first is not None:
        return requires(first).labels == "real"
    return all(_has_real_labels(source, data.range is not None) for source in all_values(data.source))


def require_two_classes(protocols: Sequence[Protocol], table: Table) -> None:
    """Refuse protocols for two classes where the data has another number of them. Raises `InputError`."""
    kind = next((protocol.kind for protocol in protocols if requires(protocol.kind).two_classes), None)
    if kind is not None and len(table.classes) != 2:
        raise InputError(
            f"data.positive: missing; {kind} is for two classes, and '{table.name}' has {len(table.classes)}: name "
            "those that count as the positive one together, such as "
            f"[{', '.join(table.classes[1 : len(table.classes) // 2 + 1])}]"
        )


def _labels_made_public(data: Data, parties: Parties, labels_protected: bool) -> Iterator[tuple[KeyPath, str]]:
    """The column of the labels where it would say who is in which party or bag, which is public, or who is who."""
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


def _unsuited_to_real_labels(
    data: Data, parties: Parties, protocols: Sequence[Protocol]
) -> Iterator[tuple[KeyPath, str]]:
    """The settings of a scenario that make no sense without classes, and why."""
    for key in ("classes", "positive"):
        if getattr(data, key) is not None:
            yield ("data", key), "names classes, but the labels are real numbers; remove it"
    if data.outside != "refuse" and data.range is None:
        yield ("data", "outside"), "needs data.range: a documented range holds all labels"
    for kind in map(partition_kind, all_values(parties.partition)):
        if kind in BY_CLASS:
            text = f"{kind} deals rows by class, but the labels are real numbers; use iid, quantity or by"
            yield ("parties", "partition"), text
    known = registry.task("regression") if default_kind(protocols) is None else task(one.kind for one in protocols)
    for position, protocol in enumerate(protocols):
        does = CLASSIFYING_BASELINES.get(protocol.kind)
        if does is not None and protocol.kind not in known.baselines:
            text = f"the baseline {protocol.kind} {does}, but the labels are real numbers; remove it"
            yield ("protocols", position), text


def _has_real_labels(source: str, ranged: bool) -> bool:
    known = entry(source)
    return ranged if known is None else known.regression
