"""Evidence about the guarantees of a run or a deployed world, read from its directory into one form for all pages.

`spent_over_periods` says in words what releases over periods have spent on one unit: the entry `over_periods` of a
run's ledger.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from aggregator.contract.protocol import Place, Sent
from federation.contract.errors import FederationError, InputError, refusing
from federation.contract.files import is_file, read_object, read_text
from federation.contract.guarantee import Guarantee, NoGuarantee
from federation.contract.trust import Servers
from scenarios.data.catalogue import is_file_name
from scenarios.scores.results import Row
from scenarios.settings.guarantees import disclosures
from scenarios.settings.loader import parse
from scenarios.settings.schema import resolve

WORLD = "world.json"  # of a deployed world
_REMEDY = "name a directory that a run or a deployed aggregator has written"
_BYTES = "bytes_per_party"


class Reality(StrEnum):
    """Whether a guarantee protects anybody."""

    SIMULATION = "simulation"  # parties are simulated, and the noise follows from a seed
    UNSEEDED = "unseeded"  # parties are simulated, and nobody knows the noise
    DEPLOYED = "deployed"  # parties answered from nodes of their own


@dataclass(frozen=True)
class Release:
    """A release, or all noise draws at one epsilon.

    `sends` is what leaves a party for it, `sent` how many bytes that are, and `noise_at` where its noise is made; empty
    or None where that is not known.
    """

    variant: str
    guarantee: Guarantee | NoGuarantee
    sent: int | None = None
    noise_at: Place | None = None
    sends: tuple[Sent, ...] = ()


@dataclass(frozen=True)
class World:
    """The releases about one group of parties, in order, and the public numbers of that group.

    `place` names the swept settings. `totals` are those of the ledger: what all of its releases cost together.
    `servers` says who adds up secure sums.
    """

    place: str
    releases: tuple[Release, ...]
    totals: tuple[Mapping[str, Any], ...]
    parties: int | None
    private_rows: int | None
    public_rows: int | None
    quorum: float | None
    draws: int
    servers: Servers = "one"

    def of(self, variant: str) -> list[Release]:
        """The releases of a variant."""
        return [release for release in self.releases if release.variant == variant]


@dataclass(frozen=True)
class Evidence:
    """Evidence of the first split of every setting, as other splits divide the same data.

    `leading` is the variant that a page is about: the default one, or else the first with a guarantee; None where no
    release has one. `over_periods` says what its releases over time have spent together, in sentences. `public_source`
    says where the public rows come from, empty where that is not known.
    """

    name: str
    description: str
    written: str
    version: str
    reality: Reality
    public_source: str
    worlds: tuple[World, ...]
    leading: str | None
    over_periods: tuple[str, ...] = ()

    @property
    def first(self) -> World:
        """The first world with a private release of the leading variant, which there must be."""
        return next(one for one in self.worlds if self.leading in set(_private([one])))

    @property
    def kept(self) -> list[tuple[Release, Guarantee]]:
        """The releases of the leading variant there that have a guarantee; none where no variant leads."""
        if self.leading is None:
            return []
        return [(one, one.guarantee) for one in self.first.of(self.leading) if isinstance(one.guarantee, Guarantee)]

    def required(self, purpose: str) -> tuple[World, Release, list[Guarantee]]:
        """Return the world `first`, the first release of `kept`, and the guarantees of all of `kept`.

        Raises `InputError` where there is none, so that there is nothing to do for the `purpose`, such as `register`.
        """
        if not self.kept:
            raise InputError(f"no release of {self.name} has a guarantee, so that there is nothing to {purpose}")
        releases, guarantees = zip(*self.kept, strict=True)
        return self.first, releases[0], list(guarantees)


def is_world(directory: Path) -> bool:
    """Whether a deployed aggregator has written a directory, and not a run."""
    return is_file(directory / WORLD) and not is_file(directory / "run.json")


def evidence(directory: Path, rows: Sequence[Row] = ()) -> Evidence:
    """Read a run directory with the rows of its results.csv, or the directory of a deployed world.

    Runs of earlier releases do not say what leaves a party: that is what the protocols of this release say for the
    scenario. Raises `InputError` for missing or damaged files.
    """
    with refusing(f"the artefacts in {directory} do not belong together ({_REMEDY})"):
        return _of_world(directory) if is_world(directory) else _of_run(directory, rows)


def _of_world(directory: Path) -> Evidence:
    summary = read_object(directory / WORLD, _REMEDY)
    if "disclosure" not in summary:
        raise InputError(
            f"{directory / WORLD} is of an earlier release, which did not write down what left a party; there is no "
            "page about it"
        )
    known, ledger = summary["disclosure"], summary["ledger"]
    sent = {variant: list(costs) for variant, costs in summary[_BYTES].items()}
    worlds = (_world("", ledger, known, sent),)
    reality = Reality.UNSEEDED if known["simulation"] else Reality.DEPLOYED
    if any(_entropy(release) == "seed" for release in worlds[0].releases):
        reality = Reality.SIMULATION
    return Evidence(known["world"], "", "", "", reality, "", worlds, _leading(worlds, ()))


def _of_run(directory: Path, rows: Sequence[Row]) -> Evidence:
    ledger, run = (read_object(directory / name, _REMEDY) for name in ("ledger.json", "run.json"))
    document = read_text(directory / "scenario.yaml", _REMEDY)
    known = run.get("disclosures") or _recomputed(directory / "scenario.yaml")
    worlds = []
    for world in ledger["worlds"]:
        found = next((one for one in known if str(one["swept"]) == str(world["swept"])), {})
        swept = {key: str(value) for key, value in world["swept"].items()}
        place = ", ".join(f"{key} = {value}" for key, value in swept.items())
        worlds.append(_world(place, world, found, _sent_by(rows, swept)))
    unseeded = all(_entropy(one) == "system" for world in worlds for one in world.releases if _entropy(one))
    some = any(_entropy(one) for world in worlds for one in world.releases)
    plain = parse(document, "scenario.yaml")[0] or {}
    leading = _leading(worlds, (str(row["variant"]) for row in rows if row["default"]))
    return Evidence(
        name=str(plain.get("name", directory.name)),
        description=str(plain.get("description") or ""),
        written=str(run["started"])[:10],
        version=str(run["versions"].get("multiparty-federation", "")),
        reality=Reality.UNSEEDED if some and unseeded else Reality.SIMULATION,
        public_source=_public_source(plain),
        worlds=tuple(worlds),
        leading=leading,
        over_periods=tuple(spent_over_periods(ledger, leading)),
    )


def _world(place: str, ledger: Mapping[str, Any], known: Mapping[str, Any], sent: Mapping[str, list[int]]) -> World:
    """`sent` are the bytes of each release of a variant, in the ledger's order."""
    following = {variant: iter(costs) for variant, costs in sent.items()}
    shown = known.get("variants", {})
    places = {variant: iter(one["noise_at"]) for variant, one in shown.items()}
    sends = {variant: tuple(Sent(**thing) for thing in one["sends"]) for variant, one in shown.items()}
    releases = []
    for one in ledger["releases"]:
        variant = one["variant"]
        noise_at = next(places.get(variant, iter(())), None)
        releases.append(
            Release(
                variant,
                _guarantee(one["guarantee"]),
                next(following.get(variant, iter(())), None),
                None if noise_at is None else Place(noise_at),
                sends.get(variant, ()),
            )
        )
    numbers: dict[str, Any] = {name: known.get(name) for name in ("parties", "private_rows", "public_rows", "quorum")}
    numbers |= {"draws": known.get("draws") or 1, "servers": known.get("servers", "one")}
    return World(place, tuple(releases), tuple(ledger["published_together"]), **numbers)


def _guarantee(record: dict[str, Any]) -> Guarantee | NoGuarantee:
    if not record.get("non_private"):
        return Guarantee.from_dict(record)
    claimed = record.get("claimed")
    return NoGuarantee(record.get("reason", ""), None if claimed is None else (claimed[0], claimed[1]))


def _entropy(release: Release) -> str:
    """Where the noise comes from: `seed`, `system`, or empty where there is none or nobody said so."""
    known = release.guarantee
    return str(known.parameters.get("entropy", "")) if isinstance(known, Guarantee) else ""


def _recomputed(scenario: Path) -> list[dict[str, Any]]:
    try:
        return disclosures(resolve(scenario))
    except FederationError:  # of an old scenario, or a protocol that is not installed any more: then it stays unknown
        return []


def _sent_by(rows: Iterable[Row], swept: Mapping[str, str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in rows:
        if row["metric"] == _BYTES and row["split"] == 0 and all(str(row[key]) == swept[key] for key in swept):
            found.setdefault(str(row["variant"]), []).append(int(row["value"]))
    return found


def _leading(worlds: Sequence[World], defaults: Iterable[str]) -> str | None:
    private = list(_private(worlds))
    chosen = next((variant for variant in defaults if variant in private), None)
    return chosen or (private[0] if private else None)


def _private(worlds: Sequence[World]) -> Iterator[str]:
    return (one.variant for world in worlds for one in world.releases if isinstance(one.guarantee, Guarantee))


def _public_source(scenario: Mapping[str, Any]) -> str:
    auxiliary = scenario.get("data", {}).get("auxiliary")
    if auxiliary is None:
        return ""
    if is_file_name(auxiliary):
        return f"the file {Path(auxiliary).name}, declared to hold nobody's private row"
    if auxiliary == "official":
        return "set aside by the data set itself"
    return "set aside from the table of the parties' own rows, to play public ones: where this is real they must be so"


def spent_over_periods(ledger: Mapping[str, Any], variant: str | None = None, *, parts: bool = True) -> list[str]:
    """A sentence for each variant, or one alone, at each epsilon, and each unit; none where there are no periods.

    Without `parts` only for the unit that the releases themselves protect, not for what is a part of it.

    Examples:
        >>> said = {"swept": {}, "variant": "soft_vote", "each": 0.3, "releases": 7, "about_one": 7, "unit": "party"}
        >>> said |= {"adjacency": "replace", "epsilon": 2.1, "delta": 0.0, "budget": {"epsilon": 3.0, "delta": 1e-6}}
        >>> print(*spent_over_periods({"over_periods": {"spent": [said]}}))
        soft_vote at ε = 0.3 in 7 periods: ε = 2.1, δ = 0 for one party (replace), which has part in 7 of them at most;
        the budget is ε = 3, δ = 1e-06
    """
    told, first = [], ""
    for one in ledger.get("over_periods", {}).get("spent", ()):
        place = "".join(f"{key} = {value}, " for key, value in one["swept"].items())
        what = f"{place}{one['variant']} at ε = {one['each']:g} in {one['releases']} periods"
        if (variant or one["variant"]) == one["variant"] and (parts or what != first):
            limit = one["budget"]
            kept = f"; the budget is ε = {limit['epsilon']:g}, δ = {limit['delta']:g}" if limit else ""
            told.append(
                f"{what}: ε = {one['epsilon']:.6g}, δ = {one['delta']:.3g} for one {one['unit'].replace('_', ' ')} "
                f"({one['adjacency']}), which has part in {one['about_one']} of them at most{kept}"
            )
        first = what
    return told
