"""Small protocols for tests of scenario files, independent of the real ones; they hold to the contract of protocols."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NoReturn

from aggregator.contract.protocol import Place, Promise, Protocol, Refused, Requires, Sent, Trust
from aggregator.contract.registry import PROTOCOLS
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import InputError
from federation.contract.guarantee import Adjacency, Guarantee, NoGuarantee, Unit
from federation.contract.plugins import Installed, find, installed

SENT = (Sent("a number", 1, True),)


class Fake(Protocol):
    """What they have in common: pure noise at epsilon unless their option says otherwise. Nobody is ever asked."""

    requires: ClassVar[Requires] = Requires()
    task: ClassVar[str] = "classification"
    model: ClassVar[str] = "linear"

    noise: str = "pure"

    def spent(self, epsilon: float, delta: float) -> tuple[float, float] | None:
        """What a release is charged for; None without a guarantee."""
        return None if self.noise == "off" else (epsilon, 0.0)

    def noise_at(self, trust: Trust) -> Place | Refused:
        """At the aggregator."""
        return Place.NOWHERE if self.noise == "off" else Place.AGGREGATOR

    def promise(self, public: PublicNumbers, epsilon: float, trust: Trust) -> Promise:
        """For a party; what misses its aim says so."""
        spent = self.spent(epsilon, public.delta)
        if spent is not None:
            return Promise(Guarantee(*spent, Unit.PARTY, Adjacency.REPLACE, "fake"), SENT)
        claimed = (epsilon, public.delta) if self.noise == "published" else None
        return Promise(NoGuarantee("no noise that keeps its promise", claimed), SENT)

    def begin(self, world: object, epsilon: float, draws: int) -> NoReturn:
        """Scenario files alone begin nothing."""
        raise AssertionError("a fake protocol is never run")

    def worst_case(self, units: int, public: PublicNumbers) -> NoReturn:
        """There is no noise to look for."""
        raise AssertionError("a fake protocol has no worst case")


@dataclass(frozen=True)
class Vote(Fake):
    """Options of many types."""

    unrelated: ClassVar[int] = 3
    requires: ClassVar[Requires] = Requires(classifier=True)

    perturb: Literal["statistic", "output"] = "statistic"
    sensitivity: Literal["published", "tight"] | None = None
    noise: Literal["pure", "off"] = "pure"
    relabel: Literal["on", "off"] = "on"
    regularisation: float | None = None
    rounds: int = 3
    fast: bool = False
    bins: tuple[int, ...] = (1, 2)
    note: str = ""

    def __post_init__(self) -> None:
        if self.regularisation is not None and self.regularisation <= 0:
            raise InputError(f"regularisation must be a positive number, got {self.regularisation}")


@dataclass(frozen=True)
class Count(Fake):
    """Without noise; one option has a factory for its default."""

    noise: ClassVar[str] = "off"  # type: ignore[misc]  # no option

    size: int = 0
    words: list[str] = field(default_factory=lambda: ["a"])


@dataclass(frozen=True)
class Ratio(Fake):
    """Another task, with noise that claims more than it keeps."""

    task: ClassVar[str] = "class_ratio"
    model: ClassVar[str] = "class_ratio"
    requires: ClassVar[Requires] = Requires(bags=True)

    noise: Literal["auto", "pure", "published", "off"] = "auto"

    def spent(self, epsilon: float, delta: float) -> tuple[float, float] | None:
        """What a release is charged for."""
        known = {"auto": (epsilon, delta), "pure": (epsilon, 0.0)}
        return known.get(self.noise)


@dataclass(frozen=True)
class Slope(Fake):
    """A third task."""

    task: ClassVar[str] = "regression"
    model: ClassVar[str] = "regression"
    requires: ClassVar[Requires] = Requires(labels="real", single_rows=True)

    noise: Literal["pure", "off"] = "pure"


KINDS: dict[str, Any] = {"count": Count, "ratio": Ratio, "slope": Slope, "soft_vote": Vote}


@dataclass(frozen=True)
class InstalledKind:
    """One of `KINDS` as a package would have installed it."""

    name: str

    @property
    def described(self) -> str:
        """As of an entry point."""
        return f"the fake '{self.name}'"

    def load(self) -> Any:
        """The class, as it is now: tests exchange some."""
        return KINDS[self.name]


def fakes_of(group: str) -> Mapping[str, InstalledKind | Installed]:
    """What is installed: of protocols the fakes alone, sorted by name."""
    return {name: InstalledKind(name) for name in sorted(KINDS)} if group == PROTOCOLS else installed(group)


def fake(group: str, what: str, name: str) -> InstalledKind | Installed:
    """One of them. Raises `InputError` if it is unknown."""
    if group != PROTOCOLS:
        return find(group, what, name)
    if name not in KINDS:
        raise InputError(f"{what} '{name}' is not known; allowed: {', '.join(sorted(KINDS))}")
    return InstalledKind(name)
