"""What the variants of a scenario promise before anything is asked: who is protected, and what leaves a party.

A scenario written out as a file that explains itself: every default, and a comment on every key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pydantic import BaseModel

from aggregator.contract.protocol import Place, Promise, Refused, Sent
from aggregator.trial.plan import PublicNumbers
from federation.contract.guarantee import Guarantee, NoGuarantee
from federation.contract.trust import Servers
from federation.secure_aggregation.plan import SAID
from scenarios.settings.loader import KeyPath, dump
from scenarios.settings.protocol_options import Protocol, default_kind, is_default, promise
from scenarios.settings.protocol_options import place as placed
from scenarios.settings.rules import idle, in_short
from scenarios.settings.schema import Scenario
from scenarios.settings.sweep import Variant, expand, variants

_NOISE = {
    Place.AGGREGATOR: "the aggregator adds the noise and must be trusted",
    Place.PARTY: "every party adds the noise itself",
    Place.NOWHERE: "nobody adds noise",
}


def promises(scenario: Scenario) -> list[dict[str, str]]:
    """For every variant that is no baseline its `variant`, its `promise` and what a party `sends`, in words.

    By what a scenario says alone, without a look at data: the guarantees at all of its epsilons, and what is sent at
    the first, in the first setting of its sweeps. Raises `InputError` for an epsilon that a variant cannot work with.

    Examples:
        >>> from scenarios.settings.schema import resolve
        >>> first = promises(resolve("quickstart"))[0]
        >>> first["promise"]
        'epsilon 1, 3, 10, 30 or 100, delta 0 for one party (replace); the aggregator adds the noise and must be
        trusted'
        >>> first["sends"]
        'a party sends a summary of what its classifier says of the public rows without noise'
    """
    found = []
    for variant, promised in _promised(scenario, expand(scenario)[0].scenario):
        where = placed(variant.kind, variant.options)
        told = where.reason if isinstance(where, Refused) else _noise(where, scenario.servers)
        found.append(
            {
                "variant": variant.name,
                "promise": f"{_told([one.spends for one in promised])}; {told}",
                "sends": "a party sends " + " and ".join(sent(one) for one in promised[0].sends),
            }
        )
    return found


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


def _noise(where: Place, servers: Servers) -> str:
    """Who makes it, and of shares who adds them up."""
    if where is Place.SHARES:
        return (
            f"parties add shares of one noise and mask what they send, of which {SAID[servers]} can read the sum alone"
        )
    return _NOISE[where]


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
