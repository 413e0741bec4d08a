"""The guarantee page: what a data protection officer must know about a run, on one printed page.

The templates of pages, each read and compiled once in a process.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aggregator.contract.protocol import Place, Sent
from federation.contract.errors import refusing, writing
from federation.contract.guarantee import SEEDED, Adjacency, Check, Guarantee, Keeper, Unit
from federation.contract.trust import Servers
from federation.mechanisms.accounting.composition import Odds
from scenarios.reports.evidence import Evidence, Reality, Release, World, evidence
from scenarios.reports.tables import MEANINGFUL_EPSILON, listed
from scenarios.scores.results import Row

if TYPE_CHECKING:
    from jinja2 import Environment, Template


def template(name: str) -> Template:
    """A template of `scenarios/templates`: values are escaped, and one that is not there is an error."""
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("scenarios"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


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
UNITS = {
    Unit.PARTY: "everything that one party holds",
    Unit.PARTY_AND_AUXILIARY_ROW: "everything that one party holds, and one public row with it",
    Unit.ROW: "one row of one party, with its label",
    Unit.PERSON: "the labels of all rows of one person",
    Unit.LABEL: "the label of one row",
}
CHANGES = {
    Adjacency.REPLACE: "is one thing or quite another",
    Adjacency.ADD_REMOVE: "is among the data or not",
}
_ONLY_LABELS = (Unit.LABEL, Unit.PERSON)
_PARTIES = (Unit.PARTY, Unit.PARTY_AND_AUXILIARY_ROW)
_KEEPERS = {
    Keeper.COORDINATOR: "The coordinator, who plans the run, enrols parties and collects answers",
    Keeper.SITE: "Each site, which operates a party's node",
    Keeper.HOLDER: "The data protection officer of each party, who answers for its data",
    Keeper.SOFTWARE: "The software, if it runs as it was written",
}
_BELIEVED: dict[Servers, str] = {
    "one": "",
    "one_semi_honest": "following the protocol, ",
    "two": "not conspiring with the second server, ",
}
_MAKERS = {Place.AGGREGATOR: Keeper.COORDINATOR, Place.PARTY: Keeper.SITE, Place.SHARES: Keeper.SITE}


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
        "roles": roles(world, release),
        "elsewhere": [
            f"at ε = {guarantee.epsilon:g} by {NOISE_AT[one.noise_at]}"
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
        Take the label of one row at ε = 1. Somebody knows all other data, and can but toss a coin about whether it
        is one thing or quite another: right in 50 of 100 cases. With the release in hand, and however clever, they are
        right in at most 73.2 of 100.
        Whatever is released, a suspicion of 1 in 100 grows to 2.7 in 100 at most.
        A test that accuses 5 of 100 innocent ones finds at most 13.6 of 100 guilty ones.
    """
    odds, unit, change = Odds.of(guarantee), UNITS[guarantee.unit], CHANGES[guarantee.adjacency]
    slack = f" and δ = {guarantee.delta:g}" if guarantee.delta else ""
    told = [
        f"Take {unit} at ε = {guarantee.epsilon:g}{slack}. Somebody knows all other data, and can but toss a coin "
        f"about whether it {change}: right in 50 of 100 cases. With the release in hand, and however clever, they are "
        f"right in at most {_hundredths(odds.right_guesses())} of 100."
    ]
    believed = odds.belief(_SUSPICION)
    if believed is not None:
        told.append(f"Whatever is released, a suspicion of 1 in 100 grows to {_hundredths(believed)} in 100 at most.")
    if guarantee.delta:
        expected = (units or 0) * guarantee.delta
        failing = f"{expected:,.0f}" if expected >= 10 else f"{expected:.2g}"
        of_all = f": of {units:,} such units, for {failing}" if units else ""
        told.append(f"At worst the promise fails altogether with the probability δ{of_all}.")
    found = _hundredths(odds.detections(FALSE_ALARMS[-1]))
    return [*told, f"A test that accuses 5 of 100 innocent ones finds at most {found} of 100 guilty ones."]


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


def roles(world: World, release: Release) -> list[dict[str, str]]:
    """Who holds what, sees what and is trusted with what, for one release that has a guarantee."""
    exact = [one.what for one in release.sends if not one.private]
    noisy = [one.what for one in release.sends if one.private]
    number = "" if world.parties is None else f" of the {world.parties:,}"
    rows = "" if not world.private_rows else f"; {_counted(world.private_rows, 'row')} at all parties together"
    makes = {
        Place.PARTY: ", and with making its noise",
        Place.SHARES: ", and with making its share of the noise and telling nobody",
    }.get(release.noise_at or Place.NOWHERE, "")
    party = {
        "who": "The party" if world.parties == 1 else f"Each{number} part{'ies' if number else 'y'}",
        "holds": f"its own rows with their labels{rows}",
        "sees": "the public rows, the questions and what is released; nothing that another party sends",
        "trusted": f"its own data only{makes}",
    }
    return [party, *_collecting(release.noise_at, exact, noisy, world.servers), _everybody(release)]


def _collecting(
    place: Place | None, exact: Sequence[str], noisy: Sequence[str], servers: Servers
) -> Iterator[dict[str, str]]:
    """Whoever gets what parties send."""
    plainly = [f"as it is: {listed(exact)}"] if exact else []
    hidden = [f"with noise: {listed(noisy)}"] if noisy else []
    match place:
        case Place.AGGREGATOR:
            yield {
                "who": "The coordinator",
                "holds": "what parties send, until the noise is made",
                "sees": "of every party, " + "; ".join(plainly),
                "trusted": "looking at it for nothing else, keeping it from everybody, and adding the noise",
            }
        case Place.PARTY:
            yield {
                "who": "The coordinator",
                "holds": "what parties send",
                "sees": "of every party, " + "; ".join([*hidden, *plainly]),
                "trusted": "nothing that is protected: it sees no more than it may publish",
            }
        case Place.SHARES:
            yield {
                "who": "The coordinator",
                "holds": f"what parties send, masked: {listed(noisy)}",
                "sees": "; ".join(["sums with the whole noise, of no single party", *plainly]),
                "trusted": f"{_BELIEVED[servers]}not conspiring with more parties than were declared to, and a list of "
                "the parties' keys on which are no others",
            }
            if servers == "two":
                yield {
                    "who": "The second server, which somebody else runs",
                    "holds": "the keys to the masks",
                    "sees": "who takes part, and of no party what it sent",
                    "trusted": "telling the coordinator nothing but the sum of the masks: together they see "
                    f"of every party, with too little noise to hide it, {listed(noisy)}",
                }
        case Place.NOWHERE:
            yield {
                "who": "The coordinator", "holds": "what parties send", "sees": "; ".join(plainly),
                "trusted": "with everything",
            }  # fmt: skip
        case None:
            unknown = "not recorded in this directory"
            yield {"who": "The coordinator", "holds": unknown, "sees": unknown, "trusted": unknown}


def _everybody(release: Release) -> dict[str, str]:
    only_labels = isinstance(release.guarantee, Guarantee) and release.guarantee.unit in _ONLY_LABELS
    beside = " (and features are no secret)" if only_labels else ""
    return {
        "who": "Everybody else",
        "holds": "the released model",
        "sees": f"the model, and no row, vote or sum of a party{beside}",
        "trusted": "nothing",
    }


def _leaving(one: Sent, place: Place | None) -> dict[str, str]:
    """One thing that leaves a party: what it is, how much, and what hides it."""
    if one.private:
        hidden = (
            "a share of the noise, which hides it in the sum" if place is Place.SHARES else "noise, made at the party"
        )
    elif place is Place.AGGREGATOR:
        hidden = "nothing: the coordinator adds the noise"
    else:
        hidden = "nothing: declared public" if place is not Place.NOWHERE else "nothing"
    return {"what": one.what, "numbers": "" if one.numbers is None else f"{one.numbers:,}", "hidden": hidden}


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
            keeper = _MAKERS.get(place or Place.NOWHERE, Keeper.COORDINATOR)
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
        "noise_at": ", ".join(dict.fromkeys(NOISE_AT[one.noise_at] for one in releases if one.noise_at is not None)),
        "sends": "; ".join(one.what for one in releases[0].sends),
        "sent": _span([one.sent for one in releases]),
        "missing": "; ".join(dict.fromkeys(reason or "no guarantee" for reason in missing)),
    }


NOISE_AT = {
    Place.AGGREGATOR: "the coordinator",
    Place.PARTY: "every party",
    Place.SHARES: "all parties, in shares",
    Place.NOWHERE: "nobody",
}


def _span(sizes: Sequence[int | None]) -> str:
    """Bytes from the least to the most, empty where none is known."""
    known = sorted({size for size in sizes if size is not None})
    if not known:
        return ""
    return f"{known[0]:,} bytes" if len(known) == 1 else f"{known[0]:,} to {known[-1]:,} bytes"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
