"""The data protection summary: what a data protection officer must know about a run, on one printed page."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aggregator.contract.disclosure import ADDED_BY, Role, disclosed, protection, responsible
from aggregator.contract.protocol import Place, Sent
from federation.contract.errors import refusing, writing
from federation.contract.guarantee import SEEDED, Check, Guarantee, Keeper, Unit
from federation.mechanisms.accounting.composition import Odds
from scenarios.reports.evidence import Evidence, Reality, Release, World, evidence
from scenarios.reports.tables import MEANINGFUL_EPSILON
from scenarios.scores.results import Row
from scenarios.settings.guarantees import CHANGES, UNITS, Roles, roles

if TYPE_CHECKING:
    from jinja2 import Environment, Template


GUARANTEE = "guarantee.html"
FALSE_ALARMS = (0.01, 0.05)  # of the tests whose detections are told
_SUSPICION = 0.01

BANNERS = {
    Reality.SIMULATION: (
        "SIMULATION",
        "The parties are simulated, and the noise follows from a seed that stands in the scenario: whoever has the "
        "scenario can take the noise away. Nothing that this run released protects anybody, and none of it may be "
        "published. This page says what a real run with the same numbers would promise.",
    ),
    Reality.UNSEEDED: (
        "SIMULATED PARTIES, REAL NOISE",
        "One computer held the rows of all parties. The noise came from the operating system, and nobody can take it "
        "away: a release may keep its promise if it is published alone. Every other figure of the run, its accuracies "
        "first, was computed from exact data, and is covered by no guarantee.",
    ),
    Reality.DEPLOYED: (
        "REAL",
        "The parties answered from nodes of their own, and the noise came from the operating system of its maker. The "
        "promise holds as long as all does that stands at the end of this page.",
    ),
}
_ONLY_LABELS = (Unit.LABEL, Unit.PERSON)
_PARTIES = (Unit.PARTY, Unit.PARTY_AND_AUXILIARY_ROW)
_KEEPERS = {
    Keeper.COORDINATOR: "The coordinator, who plans the run, enrols parties and collects answers",
    Keeper.SITE: "Each site, which operates a party's node",
    Keeper.HOLDER: "The data protection officer of each party, who answers for its data",
    Keeper.SOFTWARE: "The software, if it runs as it was written",
}


def write_guarantee(directory: Path, rows: Sequence[Row] = ()) -> Path:
    """Write the page of a run directory, or of that of a deployed world, into it; returns its path.

    `rows` are those of the run's results.csv. Equal artefacts give equal pages. Raises `InputError` for missing or
    damaged artefacts, and where the page cannot be written.
    """
    found = evidence(directory, rows)
    with refusing(f"the artefacts in {directory} do not belong together"):
        page = template(GUARANTEE).render(**view(found))
    path = directory / GUARANTEE
    with writing(f"the guarantee page to {directory}", "allow it there"):
        path.write_text(page, encoding="utf-8")
    return path


def view(found: Evidence) -> dict[str, Any]:
    """Everything that the page says, as plain values."""
    title, banner = BANNERS[found.reality]
    page: dict[str, Any] = {
        "name": found.name,
        "written": found.written,
        "version": found.version,
        "simulated": found.reality is not Reality.DEPLOYED,
        "sources": "world.json" if found.reality is Reality.DEPLOYED else "run.json, scenario.yaml and ledger.json",
        "reality": found.reality.value,
        "title": title,
        "banner": banner,
        "others": list(_others(found)),
        "leading": found.leading,
    }
    if found.leading is None:
        return page
    world, kept = found.first, found.kept
    release, first = kept[0]
    return page | {
        "place": world.place,
        "unit": UNITS[first.unit],
        "change": CHANGES[first.adjacency],
        "roles": who(world, release),
        "elsewhere": [
            f"at ε = {guarantee.epsilon:g} by {ADDED_BY[one.noise_at]}"
            for one, guarantee in kept
            if one.noise_at is not None and one.noise_at is not release.noise_at
        ],
        "sends": [_leaving(one, release.noise_at) for one in release.sends],
        "sent": _span([one.sent for one, _ in kept]),
        "public": list(declared_public(found, world, first.unit)),
        "levels": [_level(one) for _, one in kept],
        "alarms": [f"{share:.0%}" for share in FALSE_ALARMS],
        "example": example(first, _units(world, first.unit)),
        "totals": [total(one) for one in world.totals],
        "over_periods": list(found.over_periods),
        "draws": world.draws,
        "keepers": keepers(first, release.noise_at),
        "several": len(kept) > 1,
    }


def percent(share: float) -> str:
    """An upper bound in percent, rounded up to a tenth; what is nearly sure is not said to be sure.

    Examples:
        >>> percent(0.73106), percent(0.5), percent(0.99999)
        ('73.2 %', '50.0 %', 'over 99.9 %')
    """
    tenths = math.ceil(share * 1000 - 1e-9)
    return "over 99.9 %" if tenths > 999 else f"{tenths / 10:.1f} %"


def example(guarantee: Guarantee, units: int | None = None) -> list[str]:
    """What a guarantee means for one unit of it, in sentences; `units` are as many as it protects, if that is known.

    Examples:
        >>> from federation.contract.guarantee import Adjacency, Unit
        >>> print(*example(Guarantee(1.0, 0.0, Unit.LABEL, Adjacency.REPLACE, "response")), sep="\\n")
        An attacker knows everything except whether the label of one row is replaced by anything else, and considers
        both cases equally likely. A guess is right in 50 of 100 cases. At ε = 1 the release makes it right in at most
        73.2 of 100 cases.
        A suspicion of 1 in 100 grows to at most 2.7 in 100, whatever is released.
        A test with a false alarm rate of 5 in 100 detects at most 13.6 in 100.
    """
    odds, unit, change = Odds.of(guarantee), UNITS[guarantee.unit], CHANGES[guarantee.adjacency]
    slack = f" and δ = {guarantee.delta:g}" if guarantee.delta else ""
    told = [
        f"An attacker knows everything except whether {unit} {change}, and considers both cases equally likely. A "
        f"guess is right in 50 of 100 cases. At ε = {guarantee.epsilon:g}{slack} the release makes it right in at most "
        f"{_hundredths(odds.right_guesses())} of 100 cases."
    ]
    believed = odds.belief(_SUSPICION)
    if believed is not None:
        told.append(f"A suspicion of 1 in 100 grows to at most {_hundredths(believed)} in 100, whatever is released.")
    if guarantee.delta:
        expected = (units or 0) * guarantee.delta
        failing = f"{expected:,.0f}" if expected >= 10 else f"{expected:.2g}"
        of_all = f": of {units:,} such units, for {failing}" if units else ""
        told.append(f"At worst the guarantee fails altogether with the probability δ{of_all}.")
    found = _hundredths(odds.detections(FALSE_ALARMS[-1]))
    return [*told, f"A test with a false alarm rate of 5 in 100 detects at most {found} in 100."]


def _hundredths(share: float) -> str:
    return percent(share).removesuffix(" %")


def total(record: Mapping[str, Any]) -> dict[str, Any]:
    """What all releases of a world cost together, of one unit, with what the best attacker is right about then."""
    epsilon, delta = float(record["epsilon"]), float(record["delta"])
    return {
        "unit": UNITS[Unit(record["unit"])],
        "epsilon": f"{epsilon:.4g}",
        "delta": f"{delta:.3g}",
        "releases": record["releases"],
        "others": record.get("others", 0),
        "right": percent(Odds(epsilon, delta).right_guesses()) if delta < 1 else percent(1.0),
    }


def who(world: World, release: Release) -> list[Roles]:
    """Return who has, sees and is trusted with what for one release, as rows of a table."""
    number = "" if world.parties is None else f" of the {world.parties:,}"
    names = {
        Role.PARTY: "The party" if world.parties == 1 else f"Each{number} part{'ies' if number else 'y'}",
        Role.AGGREGATOR: "The aggregator (operated by the coordinator)",
        Role.HELPER: "The helper server (operated by another organisation)",
    }
    names = {role: names.get(role, f"{role[:1].upper()}{role[1:]}") for role in Role}
    found = roles(disclosed(release.noise_at, world.servers, release.sends), names)
    if world.private_rows:
        found[0]["has"].append(f"a part of the {_counted(world.private_rows, 'row')} of all parties")
    return found


def _leaving(one: Sent, place: Place | None) -> dict[str, str]:
    """Return one thing that leaves a party: what it is, how much, and what protects it."""
    numbers = "" if one.numbers is None else f"{one.numbers:,}"
    return {"what": one.what, "numbers": numbers, "hidden": protection(place, one.private)}


def declared_public(found: Evidence, world: World, unit: Unit) -> Iterator[str]:
    """What was declared public, with the number of rows that it is about."""
    if world.public_rows is not None:
        source = f" ({found.public_source})" if found.public_source else ""
        yield f"{_counted(world.public_rows, 'row')} without labels, with all features{source}"
    elif found.public_source:
        yield f"rows without labels, with all features ({found.public_source})"
    if unit in _ONLY_LABELS:
        count = _counted(world.private_rows, "row") if world.private_rows else "all rows"
        yield f"the features of {count} of the parties, and at which party each row is: only labels are protected"
    quorum = "" if world.quorum is None else f", and that {world.quorum:.0%} of them must answer"
    yield f"how many parties there are{quorum}; the feature map and all options"


def keepers(guarantee: Guarantee, place: Place | None) -> list[dict[str, Any]]:
    """The assumptions of a guarantee, but for the seed, which is the banner's, by who must see to them."""
    groups: dict[Keeper, list[tuple[int, str, str]]] = {keeper: [] for keeper in _KEEPERS}
    for number, one in enumerate(guarantee.assumptions, 1):
        if one.text == SEEDED.text:
            continue
        keeper = one.keeper
        if keeper is Keeper.NOISE_MAKER:
            keeper = responsible(place)
        unchecked = keeper is Keeper.SOFTWARE and one.check is Check.DECLARED
        groups[keeper].append((number, one.text, "taken for granted" if unchecked else str(one.check)))
    return [{"who": _KEEPERS[keeper], "assumptions": some} for keeper, some in groups.items() if some]


def _units(world: World, unit: Unit) -> int | None:
    """How many units the guarantee protects; of persons nobody counts them."""
    if unit is Unit.PERSON:
        return None
    return world.parties if unit in _PARTIES else world.private_rows


def _level(guarantee: Guarantee) -> dict[str, Any]:
    odds = Odds.of(guarantee)
    return {
        "epsilon": f"{guarantee.epsilon:.6g}",
        "delta": f"{guarantee.delta:g}",
        "right": percent(odds.right_guesses()),
        "detections": [percent(odds.detections(share)) for share in FALSE_ALARMS],
        "weak": guarantee.epsilon > MEANINGFUL_EPSILON,
    }


def _others(found: Evidence) -> Iterator[dict[str, str]]:
    """A line for every variant in every setting, but for the leading one in the first."""
    first = None if found.leading is None else found.first
    for world in found.worlds:
        for variant in dict.fromkeys(release.variant for release in world.releases):
            if variant != found.leading or world is not first:
                yield _line(world, variant, world.of(variant))


def _line(world: World, variant: str, releases: Sequence[Release]) -> dict[str, str]:
    kept = [one.guarantee for one in releases if isinstance(one.guarantee, Guarantee)]
    missing = [one.guarantee.reason for one in releases if not isinstance(one.guarantee, Guarantee)]
    return {
        "variant": variant,
        "place": world.place,
        "unit": "; ".join(dict.fromkeys(UNITS[one.unit] for one in kept)) or "nobody",
        "epsilon": ", ".join(f"{one.epsilon:g}" for one in kept),
        "delta": ", ".join(dict.fromkeys(f"{one.delta:g}" for one in kept)),
        "noise_at": ", ".join(dict.fromkeys(ADDED_BY[one.noise_at] for one in releases if one.noise_at is not None)),
        "sends": "; ".join(one.what for one in releases[0].sends),
        "sent": _span([one.sent for one in releases]),
        "missing": "; ".join(dict.fromkeys(reason or "no guarantee" for reason in missing)),
    }


def _span(sizes: Sequence[int | None]) -> str:
    """Bytes from the least to the most, empty where none is known."""
    known = sorted({size for size in sizes if size is not None})
    if not known:
        return ""
    return f"{known[0]:,} bytes" if len(known) == 1 else f"{known[0]:,} to {known[-1]:,} bytes"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def template(name: str) -> Template:
    """A template of `scenarios/templates`: values are escaped, and one that is not there is an error."""
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    made = Environment(
        loader=PackageLoader("scenarios"),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "quoted": partial(json.dumps, ensure_ascii=False),  # a text of YAML
        "shown": "{:g}".format,
        "bullet": "- {}.".format,
        "sentence": "{}.".format,
    }
    return made
