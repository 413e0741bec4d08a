"""A whole scenario: its sections and the rules between them; how it is read, completed with defaults and checked.

Variants of the protocols differ, and have names that are valid file names.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError

from aggregator.contract import registry
from federation.contract.errors import InputError
from federation.contract.trust import Servers, TrustTerms
from scenarios.data.readers import is_there
from scenarios.settings.loader import KeyPath, load
from scenarios.settings.parties import LOGISTIC, single_classifiers
from scenarios.settings.problems import checked, problems, refusal, rule
from scenarios.settings.protocol_options import BASELINES, Protocol, misplaced, variant_name, wanted_features
from scenarios.settings.rules import baselines_beside, unfounded, unsuited, unsummed, untimely, unused
from scenarios.settings.sections import Chosen, Data, Engine, Parties, Privacy, Trials
from scenarios.settings.values import FileName, Section, all_values
from scenarios.settings.words import NEXT

# Measured on adult, ctg, digits and har with 20 to 400 parties: at ALPHA .1 parameter averages were ahead of the
# default by .010 in mean accuracy, at .5 behind by .008.
_FEW_CLASSES = 0.3
_DEFAULT = {"kind": "soft_vote"}


def _distinct(protocols: tuple[Protocol, ...]) -> tuple[Protocol, ...]:
    if not protocols:
        raise rule("must not be empty")
    first: dict[str, int] = {}
    called: dict[str, int] = {}
    for position, protocol in enumerate(protocols):
        for options, _ in protocol.choices():
            asked, name = variant_name(protocol.kind, options), protocol.named(options)
            if len(name) > _LONGEST_NAME:
                raise refusal(
                    f"entry {position} (from 0) has a variant whose options make a name of {len(name)} letters, "
                    f"allowed are {_LONGEST_NAME}, as files are called by it; give it a name of its own with name"
                )
            if asked in first:
                alike = f"entries {first[asked]} and {position} (from 0) both ask"
                twice = f"entry {position} (from 0) asks twice"
                raise refusal(f"{twice if first[asked] == position else alike} for '{asked}'; remove one")
            same = name.lower()  # some file systems make no difference
            if same in called:
                raise refusal(
                    f"entries {called[same]} and {position} (from 0) both call a variant '{name}'; rename either"
                )
            first[asked] = called[same] = position
    return protocols


Protocols = Annotated[tuple[Protocol, ...], AfterValidator(_distinct)]


class Scenario(Section):
    """A whole scenario. Scalars of `data` and `parties` that are swept hold tuples until `sweep.expand`."""

    name: FileName
    """Names the run and its folder."""
    description: str | None = None
    """What it shows, in one line."""
    data: Data
    parties: Parties
    protocols: Protocols = Field(default=(_DEFAULT,), validate_default=True)
    """Compared side by side on the same data and parties; options given as lists are swept, and an entry may have a
    `name`, by which tables, figures and files call it. Left out where parties see few classes, partition {dirichlet:
    ALPHA} with ALPHA below 0.3, it is parameter_average."""
    trust: Literal["aggregator", "secure", "none"] = "aggregator"
    """Whom parties trust: the `aggregator`, to see their answers, a `secure` summation, which shows it nothing but sums
    of answers that share one noise, or `none`: every answer is private by itself. Of protocols that do not say their
    own."""
    servers: Servers = "one"
    """Who adds up with trust: secure. one server, taken to do what it likes; one_semi_honest, which parties believe to
    follow the protocol and only look; or two, which parties believe not to collude with each other."""
    baselines: bool = True
    """Whether constant, pooled, individual and noise_free (the first protocol without its noise) stand beside the
    protocols, to tell what releases are worth."""
    chosen: Chosen | None = None
    """How the first protocol was chosen, as in {by: pilot, private: false}; null: without a look at private rows."""
    privacy: Privacy
    trials: Trials = Trials()
    engine: Engine = Engine()
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    """Everything random follows from it; results of equal seeds are equal."""

    def clashes(self) -> list[tuple[KeyPath, str]]:
        """What the protocols cannot work with, and what is for other protocols, data or labels."""
        world = self.data, self.parties, self.protocols
        trained = [member for value in all_values(self.parties.classifier) for member in single_classifiers(value)]
        found: set[tuple[KeyPath, str]] = {
            (("protocols", position), text)
            for position, protocol in enumerate(self.protocols)
            for texts in (protocol.untrusted(), *(protocol.refusals(self.data.stages, one) for one in trained))
            for text in texts
        }
        known = (*misplaced(self.protocols), *unfounded(self.protocols))
        found |= {(("protocols", position), text) for position, text in known}
        if self.data.time is not None and self.chosen is not None and self.chosen.charge is not None:
            found.add((("chosen",), "a private selection is not counted over periods; remove data.time, or chosen"))
        if 0 in all_values(self.data.test) and all(protocol.kind in BASELINES for protocol in self.protocols):
            found.add((("data", "test"), "0 leaves no row to score baselines on, and they release no model; raise it"))
        found |= {*untimely(self.data, self.parties, self.trials)}
        return sorted({*found, *unsuited(*world), *unused(*world), *unsummed(self.servers, self.protocols)})

    def terms(self, parties: int) -> TrustTerms:
        """Return the trust terms of so many parties."""
        return TrustTerms(parties, self.parties.quorum, self.parties.colluding, self.servers)

    def to_plain(self) -> dict[str, Any]:
        """Plain values as in a scenario file, every default written out; `resolve` of it is this scenario."""
        return self.model_dump(mode="json")


def resolve(source: str | Path | Mapping[str, Any], overrides: Iterable[str] = ()) -> Scenario:
    """Read, override and check a scenario: a file, the name of a library scenario, or a mapping.

    `overrides` are `KEY=VALUE` settings, applied in order. `name` defaults to the file's name. A relative
    `data.source` or `data.auxiliary` becomes absolute when it is a file beside the scenario file (or, when it comes
    from an override, in the working directory). Raises `InputError` with one line per problem, each with its file and
    line or its setting, the key path, what is allowed and what came.

    Examples:
        >>> scenario = resolve("quickstart", ["privacy.epsilon=2", "parties.quorum=0.8"])
        >>> scenario.privacy.epsilon, scenario.parties.quorum, scenario.data.test
        ((2.0,), 0.8, 0.2)
        >>> resolve("quickstart", ["trials.nosie=3"])  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        federation.contract.errors.InputError: --set trials.nosie=3: trials.nosie: unknown key; allowed: ...
    """
    document = load(source)
    _find_files(document.value, document.base)
    for setting in overrides:
        document.override(setting)
    _find_files(document.value, Path.cwd())
    _default_protocols(document.value)
    _default_trust(document.value)
    _default_features(document.value)
    _default_test(document.value)
    _default_seeds(document.value)
    _default_baselines(document.value)
    document.value.setdefault("name", re.sub(r"[^A-Za-z0-9._-]+", "-", document.stem).lstrip(".") or "scenario")
    try:
        return checked(Scenario, document.value)
    except ValidationError as error:
        found = sorted(problems(error), key=lambda problem: document.order(problem[0]))
        raise InputError("\n".join(f"{document.place(path)}: {_dotted(path)}{text}" for path, text in found)) from None


def _default_protocols(plain: dict[str, Any]) -> None:
    """Put in the protocol for parties that are declared to see few of the classes, where none is asked for."""
    parties = plain.get("parties")
    if "protocols" in plain or not isinstance(parties, dict):
        return
    partition, classifier = parties.get("partition"), parties.get("classifier", LOGISTIC)
    alpha = partition.get("dirichlet") if isinstance(partition, dict) else None
    logistic = classifier == LOGISTIC or (isinstance(classifier, dict) and [*classifier] == [LOGISTIC])
    if isinstance(alpha, int | float) and 0 < alpha < _FEW_CLASSES and logistic:
        plain["protocols"] = [{"kind": "parameter_average"}]


def _default_trust(plain: dict[str, Any]) -> None:
    """Put in the scenario's trust where a protocol has none of its own."""
    common, protocols = plain.get("trust"), plain.get("protocols")
    entries = [entry for entry in protocols if isinstance(entry, dict)] if isinstance(protocols, list) else []
    for entry in entries:
        if common is not None and entry.get("kind") in registry.protocol_names():
            entry.setdefault("trust", common)


def _default_features(plain: dict[str, Any]) -> None:
    """Put in the feature map that the first protocol wants where none is asked for and it wants one of its own."""
    data, protocols = plain.get("data"), plain.get("protocols")
    if isinstance(data, dict) and isinstance(protocols, list):
        kinds = [entry.get("kind") for entry in protocols if isinstance(entry, dict)]
        if features := wanted_features(kinds):
            data.setdefault("features", list(features))


def _default_test(plain: dict[str, Any]) -> None:
    """Put in that rows that arrive over time are tested on the next period."""
    data = plain.get("data")
    if isinstance(data, dict) and data.get("time") is not None:
        data.setdefault("test", NEXT)


def _default_seeds(plain: dict[str, Any]) -> None:
    """Put in the scenario's seed where a random projection has none of its own."""
    data = plain.get("data")
    stages = data.get("features") if isinstance(data, dict) else None
    if isinstance(data, dict) and isinstance(stages, list | tuple):
        seed = plain.get("seed", Scenario.model_fields["seed"].default)
        data["features"] = [_with_seed(stage, seed) for stage in stages]


def _with_seed(stage: Any, seed: Any) -> Any:
    if not isinstance(stage, dict) or [*stage] != ["project"]:
        return stage
    size = stage["project"]
    return {"project": {"seed": seed, **(size if isinstance(size, dict) else {"dimensions": size})}}


def _default_baselines(plain: dict[str, Any]) -> None:
    """Put in the baselines of the protocols' task that are not listed, unless they are switched off."""
    protocols = plain.setdefault("protocols", [dict(_DEFAULT)])
    data, parties = plain.get("data"), plain.get("parties")
    scored = not isinstance(data, dict) or data.get("test") != 0
    if plain.get("baselines", True) is not True or not scored or not isinstance(protocols, list):
        return
    entries = [entry for entry in protocols if isinstance(entry, dict)]
    alone = isinstance(parties, dict) and parties.get("count") == 1
    plain["protocols"] = [*protocols, *({"kind": kind} for kind in baselines_beside(entries, alone))]


def _dotted(path: KeyPath) -> str:
    return f"{'.'.join(map(str, path))}: " if path else ""


def _find_files(document: Mapping[str, Any], base: Path) -> None:
    """Make sources and public rows that are files under `base` absolute, in place."""
    data = document.get("data")
    if not isinstance(data, dict):
        return

    def found(source: Any) -> Any:
        if not isinstance(source, str) or not Path(source).suffix:
            return source
        path = base / os.path.expanduser(source)
        return str(path.resolve()) if is_there(path) else source

    for key in data.keys() & {"source", "auxiliary"}:
        named = data[key]
        data[key] = [found(item) for item in named] if isinstance(named, list) else found(named)


_LONGEST_NAME = 200  # file systems allow 255 bytes, of which suffixes take some
