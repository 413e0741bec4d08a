"""Planned guarantees of a scenario's variants, before any query: who is protected, and what leaves a party.

`to_yaml` writes a scenario as a file that explains itself: every default, and a comment on every key.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, Literal, TypedDict

from pydantic import BaseModel

from aggregator.contract.disclosure import Fact, Relation, Role, disclosed, noise
from aggregator.contract.protocol import Promise, Refused, Sent
from aggregator.trial.plan import PublicNumbers
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit
from scenarios.settings.loader import KeyPath, dump
from scenarios.settings.protocol_options import Protocol, default_kind, is_default, promise
from scenarios.settings.protocol_options import place as placed
from scenarios.settings.rules import idle, in_short
from scenarios.settings.schema import Scenario
from scenarios.settings.sweep import Variant, expand, variants

UNITS: Mapping[Unit, str] = {
    Unit.PARTY: "all data of one party",
    Unit.PARTY_AND_AUXILIARY_ROW: "all data of one party and one public row, together",
    Unit.ROW: "one row of one party, with its label",
    Unit.PERSON: "the set of labels of one person",
    Unit.LABEL: "the label of one row",
}
CHANGES: Mapping[Adjacency, str] = {
    Adjacency.REPLACE: "is replaced by anything else",
    Adjacency.ADD_REMOVE: "is added or removed",
}

_COLUMNS: Mapping[Relation, Literal["has", "sees", "trusted"]] = {
    Relation.HAS: "has",
    Relation.SEES: "sees",
    Relation.TRUSTED: "trusted",
}


class Roles(TypedDict):
    """What one role has, sees and is trusted with."""

    who: str
    has: list[str]
    sees: list[str]
    trusted: list[str]


def promises(scenario: Scenario) -> list[dict[str, Any]]:
    """Return for every variant that is no baseline its `variant`, its `promise`, what a party `sends`, and its `roles`.

    They follow from the scenario alone: no data is read. They are the guarantees at all epsilons, and what is sent at
    the first, in the first setting of a sweep. `roles` say who has, sees and is trusted with what. Raises `InputError`
    for an epsilon that a variant cannot work with.

    Examples:
        >>> from scenarios.settings.schema import resolve
        >>> first = promises(resolve("quickstart"))[0]
        >>> first["promise"]
        'epsilon 1, 3, 10, 30 or 100, delta 0 for one party (replace); noise is added by the aggregator (central
        DP)'
        >>> first["sends"]
        'a party sends a summary of what its classifier says of the public rows without noise'
        >>> first["roles"][1]["sees"]
        ['from every party without noise: a summary of what its classifier says of the public rows']
    """
    found = []
    for variant, promised in _promised(scenario, expand(scenario)[0].scenario):
        where, sends = placed(variant.kind, variant.options), promised[0].sends
        known: list[Roles] = []
        if isinstance(where, Refused):
            why = where.reason
        else:
            why, known = noise(where), roles(disclosed(where, scenario.servers, sends))
        found.append(
            {
                "variant": variant.name,
                "promise": f"{_told([one.spends for one in promised])}; {why}",
                "sends": "a party sends " + " and ".join(sent(one) for one in sends),
                "roles": known,
            }
        )
    return found


def roles(facts: Sequence[Fact], names: Mapping[Role, str] = MappingProxyType({})) -> list[Roles]:
    """Lay the facts out as one row for each role: `who`, and what it `has`, `sees` and is `trusted` with.

    `names` replace the names of roles.

    Examples:
        >>> from aggregator.contract.protocol import Place, Sent
        >>> roles(disclosed(Place.PARTY, "one", [Sent("its sums", 9, private=True)]))[1]["sees"]
        ['from every party with noise: its sums']
    """
    found: dict[Role, Roles] = {}
    for fact in sorted(facts, key=lambda fact: list(Role).index(fact.role)):
        row = found.setdefault(
            fact.role, {"who": names.get(fact.role, str(fact.role)), "has": [], "sees": [], "trusted": []}
        )
        row[_COLUMNS[fact.relation]].append(str(fact))
    return list(found.values())


def in_lines(rows: Sequence[Roles], variants: str = "") -> list[str]:
    """Return the rows of `roles` as lines, one fact each, under a heading that names the `variants`.

    Examples:
        >>> in_lines([{"who": "each party", "has": ["its rows"], "sees": [], "trusted": ["its data"]}], "soft_vote")
        ['who has, sees and is trusted with what (soft_vote):', '  each party has its rows', '  each party is trusted
        with its data']
    """
    lines = [f"who has, sees and is trusted with what{f' ({variants})' if variants else ''}:"]
    for row in rows:
        lines += [f"  {row['who']} {relation} {text}" for relation in Relation for text in row[_COLUMNS[relation]]]
    return lines


def told_once(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines about the roles in `promises`: those that several variants share once.

    Examples:
        >>> from scenarios.settings.schema import resolve
        >>> told_once(promises(resolve("quickstart")))[0]
        'who has, sees and is trusted with what (soft_vote, soft_vote-gaussian):'
    """
    alike: dict[str, list[Mapping[str, Any]]] = {}
    for one in found:
        if one["roles"]:
            alike.setdefault(str(one["roles"]), []).append(one)
    return [
        line
        for same in alike.values()
        for line in in_lines(same[0]["roles"], ", ".join(one["variant"] for one in same))
    ]


def disclosures(scenario: Scenario) -> list[dict[str, Any]]:
    """What a run writes down about who shows what to whom, for every setting of the sweep, without a look at data.

    As `disclosures` of run.json, with None for numbers that only data can tell. Raises as `promises`.

    Examples:
        >>> from scenarios.settings.schema import resolve
        >>> found = disclosures(resolve("quickstart"))[0]
        >>> found["parties"], found["public_rows"], found["variants"]["soft_vote"]["noise_at"][0]
        (200, 430, 'aggregator')
    """
    return [
        {
            "swept": setting.swept,
            "world": scenario.name,
            "simulation": True,
            "parties": setting.scenario.parties.count,
            "quorum": setting.scenario.parties.quorum,
            "servers": setting.scenario.servers,
            "private_rows": None,
            "public_rows": _public_numbers(setting.scenario).public_rows,
            "draws": setting.scenario.trials.noise,
            "variants": {
                variant.name: {
                    "protocol": variant.kind,
                    "noise_at": [] if isinstance(where, Refused) else [str(where)] * len(scenario.privacy.epsilon),
                    "sends": [asdict(one) for one in promised[0].sends],
                }
                for variant, promised in _promised(setting.scenario, setting.scenario)
                for where in (placed(variant.kind, variant.options),)
            },
        }
        for setting in expand(scenario)
    ]


def _promised(scenario: Scenario, first: Scenario) -> Iterator[tuple[Variant, list[Promise]]]:
    """The variants that are no baselines, with their promises at each epsilon by the public numbers of `first`."""
    public = _public_numbers(first)
    for variant in variants(scenario):
        asked = (promise(variant.kind, variant.options, epsilon, public) for epsilon in scenario.privacy.epsilon)
        if promised := [one for one in asked if one is not None]:
            yield variant, promised


def _public_numbers(point: Scenario) -> PublicNumbers:
    """What one setting of a sweep says of its public numbers."""
    given, streamed = point.parties.bags, point.data.time is not None  # numbers of each period, where rows arrive
    each = given if isinstance(given, int) else None
    classes = None if point.data.classes is None else len(point.data.classes)
    return PublicNumbers(
        point.privacy.delta,
        point.trials.noise,
        None if point.parties.count is None else point.terms(point.parties.count),
        2 if point.data.positive else classes,
        public_rows=point.data.auxiliary if isinstance(point.data.auxiliary, int) and not streamed else None,
        bags=None if streamed else each,
        largest_bag=point.parties.rows // each if point.parties.rows and each else None,
        rows_per_person=0 if point.data.person is None else point.data.rows_per_person,
        common_bags=point.parties.common_bags,
        label_range=point.data.range,
    )


def _told(spends: Sequence[Guarantee | NoGuarantee]) -> str:
    """What releases spend, those together that differ in their epsilons only, and why the first keeps nothing."""
    alike: dict[str, dict[str, None]] = {}
    for one in spends:
        if isinstance(one, Guarantee):
            rest = f"delta {one.delta:g} for one {str(one.unit).replace('_', ' ')} ({one.adjacency})"
            alike.setdefault(rest, {})[f"{one.epsilon:g}"] = None
    found = [f"epsilon {_either(epsilons)}, {rest}" for rest, epsilons in alike.items()]
    reasons = [one.reason for one in spends if isinstance(one, NoGuarantee)]
    return "; ".join([*found, *(f"NON-PRIVATE ({reason})" for reason in reasons[:1])])


def _either(texts: Iterable[str]) -> str:
    *most, last = texts
    return f"{', '.join(most)} or {last}" if most else last


def sent(one: Sent) -> str:
    """One thing that leaves a party, in words.

    Examples:
        >>> sent(Sent("the sum of its rows by class", 9, private=True))
        'the sum of its rows by class (9 numbers) with noise'
    """
    size = "" if one.numbers is None else f" ({one.numbers:,} numbers)"
    return f"{one.what}{size}{' with noise' if one.private else ' without noise'}"


def to_yaml(scenario: Scenario) -> str:
    """The scenario as a file that `schema.resolve` reads back, with every default and a comment on every key.

    Keys that make no difference beside its protocols say so.

    Examples:
        >>> from scenarios.settings.schema import resolve
        >>> print(*to_yaml(resolve("quickstart")).splitlines()[:5], sep="\\n")
        # Scenario 'quickstart' with every default written out. Lists of scalars are swept.
        # Names the run and its folder.
        name: quickstart
        # What it shows, in one line.
        description: 200 parties with 5 handwritten digits each learn to read them; a first run, in seconds.
    """
    head = f"# Scenario '{scenario.name}' with every default written out. Lists of scalars are swept.\n"
    comments = _descriptions(Scenario, ())
    for path, why in idle(scenario.data, scenario.protocols, scenario.privacy):
        comments[path] = [*comments.get(path, []), f"Without effect here: {why}."]
    comments |= {("protocols", i): lines for i, lines in _reasons(scenario.protocols)}
    plain = scenario.to_plain() | {"protocols": [protocol.shown() for protocol in scenario.protocols]}
    return head + commented(plain, comments)


def commented(plain: Mapping[str, Any], comments: Mapping[KeyPath, Sequence[str]]) -> str:
    """The keys that a scenario says, as a file, with the lines of `comments` above each key and entry of protocols.

    Examples:
        >>> said = {"name": "first", "privacy": {"epsilon": 1}}
        >>> print(commented(said, {("privacy", "epsilon"): ["Smaller hides more."]}))
        name: first
        privacy:
          # Smaller hides more.
          epsilon: 1
        <BLANKLINE>
    """
    return "".join(_written(Scenario, plain, (), comments))


def _written(
    section: type[BaseModel], plain: Mapping[str, Any], path: KeyPath, comments: Mapping[KeyPath, Sequence[str]]
) -> Iterator[str]:
    indent = "  " * len(path)
    for key, field in section.model_fields.items():
        if key not in plain:
            continue
        here, value, inner = (*path, key), plain[key], field.annotation
        yield from (f"{indent}# {line}\n" for line in comments.get(here, ()))
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield f"{indent}{key}:\n"
            yield from _written(inner, value, here, comments)
        elif key == "protocols":
            yield f"{indent}{key}:\n"
            for i, entry in enumerate(value):
                yield from (f"{indent}  # {line}\n" for line in comments.get((*here, i), ()))
                yield f"{indent}  - {dump(entry, flow=True)}"
        else:
            yield f"{indent}{key}: {dump(value, flow=True)}"


def _descriptions(section: type[BaseModel], path: KeyPath) -> dict[KeyPath, list[str]]:
    """What every key below a section means."""
    found: dict[KeyPath, list[str]] = {}
    for key, field in section.model_fields.items():
        if field.description:
            found[*path, key] = [" ".join(field.description.split())]
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            found |= _descriptions(field.annotation, (*path, key))
    return found


def _reasons(protocols: Sequence[Protocol]) -> Iterator[tuple[int, list[str]]]:
    """Why defaults are what they are, at the entry that has the default variant."""
    kind = default_kind(protocols)
    for i, protocol in enumerate(protocols):
        if protocol.kind == kind and any(is_default(kind, options) for options, _ in protocol.choices()):
            yield i, in_short(kind)
