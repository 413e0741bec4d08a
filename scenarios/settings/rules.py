"""Rules between settings: suitable labels, streams, unused settings, baselines, and the reasons for defaults.

- Labels of the data must suit the task of the protocols.
- Rows that arrive over time exclude some settings and require others.
- A setting that nothing uses is refused where the user expects an effect; otherwise `show` reports it.
- Baselines stand beside the protocols of a scenario that does not mention them.
- `why_default` explains how the defaults of a protocol were chosen.
"""

import contextlib
import dataclasses
import inspect
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from aggregator.contract import registry
from aggregator.contract.protocol import Place, Rule
from aggregator.trial.plan import VariantPlan
from federation.contract.errors import FederationError, InputError
from federation.contract.query import OFF
from federation.contract.trust import Servers
from scenarios.data.catalogue import NO_RANGE, entry, names
from scenarios.data.tables import Table
from scenarios.settings.loader import KeyPath, dump
from scenarios.settings.parties import partition_kind
from scenarios.settings.protocol_options import (
    BASELINES,
    CLASSIFYING_BASELINES,
    CONSTANT,
    INDIVIDUAL,
    NOISE_FREE,
    POOLED,
    Protocol,
    default_kind,
    is_default,
    place,
    requires,
    spending,
    task,
    without_noise,
)
from scenarios.settings.sections import Data, Parties, Privacy, Trials
from scenarios.settings.values import all_values
from scenarios.settings.words import ALL, BY, BY_CLASS, NEXT


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


def summed(protocols: Sequence[Protocol]) -> bool:
    """Return whether parties of any variant share one noise, so that secure aggregation adds up their responses."""
    return any(
        place(protocol.kind, options) is Place.SHARES for protocol in protocols for options, _ in protocol.choices()
    )


def baselines_beside(entries: Sequence[Mapping[str, Any]], alone: bool) -> list[str]:
    """The baselines that suit entries of `protocols` and are not among them; none where only baselines are.

    `alone`: there is one party, who has all rows that there are, so that it says what `pooled` does.

    Examples:
        >>> baselines_beside([{"kind": "label_sums"}, {"kind": "pooled"}], alone=False)
        ['constant', 'noise_free']
        >>> baselines_beside([{"kind": "pooled"}], alone=False)
        []
    """
    kinds, known = [entry.get("kind") for entry in entries], registry.protocol_names()
    chosen = [kind for kind in kinds if kind in known]
    beside: list[str] = []
    with contextlib.suppress(FederationError, ValueError):  # an entry that cannot be used, as a scenario's check says
        if chosen:
            wanted = task(chosen).baselines - ({INDIVIDUAL} if alone else set())
            beside = [kind for kind in (CONSTANT, POOLED, INDIVIDUAL) if kind in wanted and kind not in kinds]
            if NOISE_FREE not in kinds and noise_free([Protocol.parse(dict(entry)) for entry in entries]):
                beside.append(NOISE_FREE)
    return beside


def noise_free(protocols: Sequence[Protocol]) -> tuple[str, VariantPlan] | None:
    """The variant that the baseline `noise_free` stands for, and what is released in its place: it with `noise: off`.

    The variant is the default, or else the first that adds noise. None where there is none, or its protocol has no
    such option. Raises `InputError` for a protocol that cannot be used.
    """
    first = default_kind(protocols)
    noisy = [
        (one, options)
        for one in protocols
        for options, _ in one.choices()
        if one.kind not in BASELINES and not without_noise(one.kind, options)
    ]
    if not noisy:
        return None
    own = ((one, options) for one, options in noisy if one.kind == first and is_default(one.kind, options))
    protocol, chosen = next(own, noisy[0])
    options = {**chosen, "noise": OFF}
    with contextlib.suppress(FederationError, TypeError, ValueError):
        if without_noise(protocol.kind, options):
            return protocol.named(chosen), VariantPlan(NOISE_FREE, protocol.kind, options, reference=True)
    return None


def unfounded(protocols: Sequence[Protocol]) -> Iterator[tuple[int, str]]:
    """(position, why) of a baseline `noise_free` that stands for nothing."""
    kinds = [one.kind for one in protocols]
    if NOISE_FREE in kinds and noise_free(protocols) is None:
        why = "the baseline noise_free is the first protocol without its noise, and no protocol here has noise"
        yield kinds.index(NOISE_FREE), f"{why} to leave out, or its options need some; remove it"


def unused(data: Data, parties: Parties, protocols: Sequence[Protocol]) -> Iterator[tuple[KeyPath, str]]:
    """(key path, why) of settings that are for class ratios, in a scenario that has none."""
    kinds = [protocol.kind for protocol in protocols]
    first = default_kind(protocols) or kinds[0]
    if data.targets is not None and not task(kinds).targets:
        yield ("data", "targets"), f"are sets to estimate class ratios of, which {first} does not do; remove it"
    if requires(first).bags:
        return
    if set(all_values(data.rows_per_person)) != {1}:
        yield ("data", "rows_per_person"), f"is for bags that persons count in, and {first} has none; remove it"
    if any(bags != 1 for bags in all_values(parties.bags)):
        yield ("parties", "bags"), f"have label counts of their own, which {first} does not ask for; remove it"


def unsummed(servers: Servers, protocols: Sequence[Protocol]) -> Iterator[tuple[KeyPath, str]]:
    """(key path, why) of other servers than the usual one, where no protocol has sums for them."""
    if servers != "one" and not summed(protocols):
        yield ("servers",), f"{servers} is for secure sums, and no protocol has any; remove it, or set trust: secure"


def idle(data: Data, protocols: Sequence[Protocol], privacy: Privacy) -> Iterator[tuple[KeyPath, str]]:
    """(key path, why) of settings that make no difference beside the protocols, whatever their values.

    They stay when protocols are exchanged for others, and so they are not refused.
    """
    real = are_real(data, protocols)
    if not any(_trains(protocol.kind, real) for protocol in protocols):
        yield ("parties", "classifier"), "no protocol or baseline trains it"
    if not summed(protocols):
        yield ("servers",), "no protocol has secure sums"
    spent = [
        spending(protocol.kind, options, privacy.epsilon[0], privacy.delta)
        for protocol in protocols
        if protocol.kind not in BASELINES
        for options, _ in protocol.choices()
        if not without_noise(protocol.kind, options)
    ]
    if not spent:
        text = "no protocol adds noise"
        yield from ((path, text) for path in (("privacy", "epsilon"), ("privacy", "delta"), ("trials", "noise")))
    elif all(one is not None and one[1] == 0 for one in spent):  # what promises nothing may use it all the same
        yield ("privacy", "delta"), "no noise uses it"


def _trains(kind: str, real: bool) -> bool:
    """Whether a protocol or baseline trains the classifier of the parties, where labels are `real` numbers or not."""
    if kind in BASELINES:
        return kind not in (CONSTANT, NOISE_FREE) and not real
    return requires(kind).classifier


def untimely(data: Data, parties: Parties, trials: Trials) -> Iterator[tuple[KeyPath, str]]:
    """(key path, why) of what does not go together with data.time, or is for it alone."""
    tests, given = all_values(data.test), all_values(data.auxiliary)
    if data.time is None:
        if trials.periods is not None:
            yield ("trials", "periods"), "needs data.time, the column that says when each row arrived"
        if trials.window != ALL:
            yield ("trials", "window"), "is for rows that arrive over time; name their column in data.time or remove it"
        if NEXT in tests:
            yield ("data", "test"), "next is the period that follows, and needs data.time; give a count or a fraction"
        return
    if trials.periods is None:
        text = "missing; data.time needs periods, such as a number of them, {every: month} or a list of their starts"
        yield ("trials", "periods"), text
    if tests != (NEXT,):
        other = next(value for value in tests if value != NEXT)
        text = f"must be {NEXT} with data.time, as a release is tested on the rows of the next period, got {other}"
        yield ("data", "test"), text
    if any(value == "official" or isinstance(value, Mapping) for value in given):
        text = (
            "must be a count or a fraction of each period's rows, or a file, with data.time: other public rows may be "
            "of later periods"
        )
        yield ("data", "auxiliary"), text
    if parties.common_bags:
        yield ("parties", "common_bags"), "with data.time every period has bags of its own; remove it"
    if BY in map(partition_kind, all_values(parties.partition)) and all_values(parties.count) != (None,):
        text = "with {by: COLUMN} and data.time all groups are parties, who may come and go; remove it"
        yield ("parties", "count"), text


_WIDTH = 110


def why_default(kind: str) -> tuple[Rule, ...]:
    """How a kind's defaults were chosen; nothing of a baseline, which has none."""
    return () if kind in BASELINES else registry.protocol(kind).why_default


def in_short(kind: str) -> list[str]:
    """Each default with its rule, in lines of up to 110 letters, and where to read on what they were validated.

    Examples:
        >>> print(*in_short("weighted_lba"), sep="\\n")
        Default noise: gaussian; rule: with noise on the label sums it has a guarantee for all data, which the
            published release has not
        Default solver: exact; rule: it is where Adam would come with enough steps, whatever the size and the number
            of bags
        Validated on: see `federation show weighted_lba`
    """
    rules = why_default(kind)
    lines = [line for rule in rules for line in _wrapped(f"Default {rule.default}; rule: {rule.rule}")]
    return [*lines, f"Validated on: see `federation show {kind}`"] if rules else []


def recorded(kinds: Iterable[str]) -> list[dict[str, str]]:
    """The rules of several kinds as plain values, each kind once, for the record of a run.

    Examples:
        >>> {rule["protocol"] for rule in recorded(["private_labels", "pooled", "private_labels"])}
        {'private_labels'}
    """
    return [{"protocol": kind, **vars(rule)} for kind in dict.fromkeys(kinds) for rule in why_default(kind)]


def described(kind: str) -> tuple[dict[str, Any], list[str]]:
    """A protocol as plain values and in lines: what it is, its options with their defaults, how these were chosen.

    Raises `InputError` for a protocol that is unknown or cannot be used.
    """
    found = registry.protocol(kind)
    bases = (base for base in found.__mro__ if "__dataclass_fields__" in vars(base))  # options may be a base's
    about = "\n\n".join(inspect.cleandoc(base.__doc__ or "") for base in bases)
    options = {option.name: getattr(found(), option.name) for option in dataclasses.fields(found)}
    record = {"protocol": kind, "about": about, "defaults": options, "why_default": recorded([kind])}
    return record, list(_lines(kind, about, options))


def _lines(kind: str, about: str, options: dict[str, Any]) -> Iterator[str]:
    yield f"protocol {kind}"
    yield from about.splitlines()
    yield ""
    yield "As an entry of a scenario, with every default:"
    yield f"  - {dump({'kind': kind, **options}, flow=True).rstrip()}"
    if rules := why_default(kind):
        yield ""
        yield "How defaults were chosen:"
    for rule in rules:
        yield f"  {rule.default}"
        yield from _wrapped(f"    rule: {rule.rule}")
        yield from _wrapped(f"    validated: {rule.validated}")


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent=(len(text) - len(text.lstrip()) + 4) * " ")
