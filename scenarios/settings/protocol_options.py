"""The entries under `protocols`: options checked by the protocol's own class, lists expanded to variants."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, core_schema

from aggregator.contract import registry
from aggregator.contract.promise import Promise
from aggregator.contract.protocol import Place, Refused, Requires, Trust
from aggregator.contract.protocol import Protocol as OptionsClass
from aggregator.contract.task import Task
from aggregator.world.public_numbers import PublicNumbers
from federation.contract.errors import FederationError, InputError, nearest_name
from federation.contract.guarantee import NoGuarantee
from scenarios.scores import tasks
from scenarios.settings.problems import MISSING, any_of, one_of, problems, refusal, refuse, rule, shown, unknown_key
from scenarios.settings.yaml_rules import KeyPath

BASELINES = POOLED, INDIVIDUAL, CONSTANT = ("pooled", "individual", "constant")
CLASSIFYING_BASELINES = {  # these have no meaning for any task but classification
    INDIVIDUAL: "trains classifiers",
    CONSTANT: "predicts a class",
}
_LISTS = (list, tuple, set, frozenset)
_EXAMPLES: dict[Any, list[Any]] = {
    type(None): [None],
    bool: [False, True],
    int: [1, 2, 10, 100],
    float: [0.01, 0.1, 0.5, 1.0, 2.0],
}


@dataclass(frozen=True)
class Protocol:
    """One entry: its kind, every option (defaults filled in), and the values of those that are swept."""

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    sweeps: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def choices(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """(all options, the swept ones among them) of each variant; the last swept option changes fastest."""
        for values in itertools.product(*self.sweeps.values()):
            swept = dict(zip(self.sweeps, values, strict=True))
            yield {name: swept.get(name, value) for name, value in self.options.items()}, swept

    def refusals(self, features: Sequence[Any], classifier: Mapping[str, Any]) -> list[str]:
        """Why variants cannot work with these features and this classifier, by their own class; none if they can."""
        if self.kind in BASELINES:
            return []
        texts: dict[str, None] = {}
        for options, _ in self.choices():
            chosen = registry.protocol(self.kind)(**options)
            try:
                chosen.check_setting(features, classifier)
            except FederationError as error:
                texts[str(error)] = None
        return list(texts)

    def to_plain(self) -> dict[str, Any]:
        """As in a scenario file."""
        lists = {name: list(values) for name, values in self.sweeps.items()}
        return {"kind": self.kind, **self.options, **lists}

    def shown(self) -> dict[str, Any]:
        """As `to_plain`, without the options that do not apply; `parse` of it is this entry."""
        known = _options(self.kind)
        hidden = [
            name
            for name, value in self.options.items()
            if name not in self.sweeps
            and value == known.defaults[name]
            and not any(known.applies(name, options) for options, _ in self.choices())
        ]
        return {name: value for name, value in self.to_plain().items() if name not in hidden}

    @classmethod
    def parse(cls, entry: Any) -> Protocol:
        """Check an entry of a scenario file; raises pydantic errors for each thing that is wrong with it."""
        if not isinstance(entry, dict):
            raise rule("must be a section such as {kind: soft_vote}")
        given = dict(entry)
        kind = given.pop("kind", None)
        names = kinds()
        if kind not in names:
            text = f"must be {one_of(names)}, got {shown(kind)}{nearest_name(str(kind), names)}"
            refuse([(("kind",), refusal(text if "kind" in entry else MISSING), kind)])
        try:
            options = _options(kind)
        except InputError as error:
            refuse([(("kind",), refusal(str(error)), kind)])
        return options.parse(given)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls.parse, serialization=core_schema.plain_serializer_function_ser_schema(cls.to_plain)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"oneOf": [options.json_schema() for options in _usable()]}


def kinds() -> list[str]:
    """Every kind that a scenario may list: installed protocols, then the baselines."""
    return [*registry.protocol_names(), *BASELINES]


def variant_name(kind: str, options: Mapping[str, Any]) -> str:
    """`kind` followed by the options that differ from their defaults, in field order; a folder name.

    A literal is named by its value (`soft_vote-output-published`) unless another option has that value too;
    everything else as `name=value`.
    """
    known = _options(kind)
    parts = [kind]
    for name in known.types:
        value = options[name]
        if known.defaults[name] == value:
            continue
        words = [word for other in known.types for word in known.words(other)]
        by_value = value in known.words(name) and words.count(value) == 1
        parts.append(str(value) if by_value else f"{name}={_text(value)}")
    return "-".join(parts)


def is_default(kind: str, options: Mapping[str, Any]) -> bool:
    """Whether every option has its default."""
    return dict(options) == _options(kind).defaults


def default_kind(protocols: Iterable[Protocol]) -> str | None:
    """The kind whose defaults a user gets without choosing: the first that is no baseline."""
    return next((protocol.kind for protocol in protocols if protocol.kind not in BASELINES), None)


def task(kinds: Iterable[str]) -> Task:
    """What protocols of these kinds are for together: the task of the first that is no baseline.

    Classification where there are baselines only.
    """
    return next(
        (tasks.task(registry.protocol(kind).task) for kind in kinds if kind not in BASELINES), tasks.CLASSIFICATION
    )


def requires(kind: str) -> Requires:
    """What a kind needs of data and parties; nothing for a baseline."""
    return Requires() if kind in BASELINES else registry.protocol(kind).requires


def wanted_features(kinds: Iterable[Any]) -> tuple[Any, ...]:
    """The feature map that the first of these kinds which is an installed protocol takes by default, if it says so."""
    known = registry.protocol_names()
    first = next((kind for kind in kinds if kind in known), None)
    try:
        return () if first is None else tuple(registry.protocol(first).requires.features)
    except InputError:  # it cannot be used, as `Protocol.parse` will say
        return ()


def misplaced(protocols: Sequence[Protocol]) -> list[tuple[int, str]]:
    """(position, why) of the protocols that do not suit the task of the first: a scenario is scored by one measure."""
    common, first = task(protocol.kind for protocol in protocols), default_kind(protocols)
    found = []
    for position, protocol in enumerate(protocols):
        own = common if protocol.kind in BASELINES else task([protocol.kind])
        if own != common:
            text = (
                f"{protocol.kind} has the task {own.name}, {first} the task {common.name}; a scenario has one, remove "
                "either"
            )
            found.append((position, text))
        elif protocol.kind in BASELINES and protocol.kind not in common.baselines and common.labels == "classes":
            does = CLASSIFYING_BASELINES.get(protocol.kind, "has no meaning here")
            text = f"the baseline {protocol.kind} {does}, which {first} cannot be compared with; remove it"
            found.append((position, text))
    return found


def promise(kind: str, options: Mapping[str, Any], epsilon: float, public: PublicNumbers) -> Promise | None:
    """What a release of a variant promises by public numbers; None for a baseline, which has none."""
    if kind in BASELINES:
        return None
    return registry.protocol(kind)(**options).promise(public, epsilon, Trust.AGGREGATOR)


def spending(kind: str, options: Mapping[str, Any], epsilon: float, delta: float) -> tuple[float, float] | None:
    """The (epsilon, delta) that a release will be charged at most; None without a guarantee."""
    promised = promise(kind, options, epsilon, PublicNumbers(delta))
    if promised is None or isinstance(promised.spends, NoGuarantee):
        return None
    return promised.spends.epsilon, promised.spends.delta


def place(kind: str, options: Mapping[str, Any]) -> Place | Refused:
    """Where the noise of a variant is made; nowhere of a baseline."""
    return Place.NOWHERE if kind in BASELINES else registry.protocol(kind)(**options).noise_at(Trust.AGGREGATOR)


def without_noise(kind: str, options: Mapping[str, Any]) -> bool:
    """Whether a variant adds no noise anywhere, so that it has a single release whatever epsilons are asked for."""
    return kind not in BASELINES and place(kind, options) is Place.NOWHERE


def why_default(kind: str) -> str:
    """Why a kind's defaults are what they are, in a line or two."""
    return "" if kind in BASELINES else registry.protocol(kind).why_default


def _usable() -> Iterator[_Options]:
    """The options of all kinds but those whose package is broken."""
    for kind in kinds():
        try:
            yield _options(kind)
        except InputError:
            continue


def _options(kind: str) -> _Options:
    return _known_options(kind, None if kind in BASELINES else registry.protocol(kind))


@cache
def _known_options(kind: str, options_type: type[OptionsClass] | None) -> _Options:
    return _Options(kind, options_type)


class _Options:
    """What the class of one protocol accepts (None: no options). Values are kept as JSON has them."""

    def __init__(self, kind: str, options_type: type[OptionsClass] | None) -> None:
        self.kind = kind
        self.type = options_type
        self.types: dict[str, Any] = {}
        self.adapters: dict[str, TypeAdapter[Any]] = {}
        self.defaults: dict[str, Any] = {}
        if self.type is None:
            return
        hints = typing.get_type_hints(self.type, include_extras=True)
        for option in dataclasses.fields(self.type):  # type: ignore[arg-type]  # it was checked when it was loaded
            if not option.init:
                continue
            self.types[option.name] = hints[option.name]
            finite: Any = Annotated[hints[option.name], AfterValidator(_finite)]
            self.adapters[option.name] = TypeAdapter(finite)
            value = option.default if option.default_factory is dataclasses.MISSING else option.default_factory()
            self.defaults[option.name] = self.adapters[option.name].dump_python(value, mode="json")

    def words(self, name: str) -> list[Any]:
        """The texts that a literal option allows, null aside; none for other options."""
        return [word for word in _literals(self.types[name]) if isinstance(word, str)]

    def applies(self, name: str, options: Mapping[str, Any]) -> bool:
        """Whether an option makes a difference beside the others: the class says not, or refuses every other value."""
        if name in self.idle(options):
            return False
        others = _examples(self.types[name])
        return others is None or any(
            self._refusal({**options, name: other}) is None for other in others if other != options[name]
        )

    def idle(self, options: Mapping[str, Any]) -> dict[str, str]:
        """Options that make no difference, and beside which: the class may say so by `idle()` of its instances."""
        return {} if self.type is None else self.type(**options).idle()

    def parse(self, given: Mapping[str, Any]) -> Protocol:
        errors: list[tuple[KeyPath, Any, Any]] = []
        options, sweeps = dict(self.defaults), {}
        for name, value in given.items():
            if name not in self.types:
                text = unknown_key(name, ["kind", *self.types])
                errors.append(((name,), refusal(text), value))
                continue
            values = value if self._is_swept(name, value) else [value]
            if not values:
                errors.append(((name,), rule("must not be empty"), value))
            clean = []
            for i, item in enumerate(values):
                path: KeyPath = (name, i) if values is value else (name,)
                try:
                    checked = self.adapters[name].validate_json(json.dumps(item), strict=True)
                    clean.append(self.adapters[name].dump_python(checked, mode="json"))
                except ValidationError as error:
                    why = self._why_refused(name, item)
                    if why is None and len(set(_union(self.types[name])) - {type(None)}) > 1:
                        why = any_of(error)
                    found = problems(error) if why is None else [((), why)]
                    errors += [((*path, *inner), refusal(text), item) for inner, text in found]
            if len(clean) == len(values) and clean:
                options[name] = clean[0]
                if values is value:
                    sweeps[name] = tuple(clean)
        if errors:
            refuse(errors)
        ordered = {name: options[name] for name in self.types}
        protocol = Protocol(self.kind, ordered, {name: sweeps[name] for name in ordered if name in sweeps})
        self._try(protocol)
        return protocol

    def _why_refused(self, name: str, item: Any) -> str | None:
        """What the class knows of a word that it does not allow, by its `why_refused(option, word)` if it has one."""
        return self.type.why_refused(name, item) if self.type is not None and isinstance(item, str) else None

    def _is_swept(self, name: str, value: Any) -> bool:
        return isinstance(value, list) and not _holds_list(self.types[name])

    def _try(self, protocol: Protocol) -> None:
        """Build each variant, for the checks that a class makes of its options together.

        An option that makes no difference in any of them is refused; in some, it is what a sweep compares with.
        """
        if self.type is None:
            return
        texts = dict.fromkeys(self._refusal(options) for options, _ in protocol.choices())
        if any(texts):
            refuse([((), refusal(text), None) for text in texts if text])
        idle = [self.idle(options) for options, _ in protocol.choices()]
        strays = [
            ((name,), refusal(f"makes no difference with {why}; remove it"), protocol.options[name])
            for name, why in idle[0].items()
            if all(name in told for told in idle)
            and (name in protocol.sweeps or protocol.options[name] != self.defaults[name])
        ]
        if strays:
            refuse(strays)

    def _refusal(self, options: Mapping[str, Any]) -> str | None:
        """What the class says against options together, None when it takes them."""
        if self.type is None:
            return None
        try:
            self.type(**options)
        except (FederationError, ValueError, TypeError) as error:
            return str(error)
        return None

    def json_schema(self) -> dict[str, Any]:
        properties: dict[str, Any] = {"kind": {"const": self.kind}}
        for name, hint in self.types.items():
            schema = self.adapters[name].json_schema()
            if not _holds_list(hint):
                schema = {"anyOf": [schema, {"type": "array", "items": schema, "minItems": 1}]}
            properties[name] = schema | {"default": self.defaults[name]}
        return {"type": "object", "properties": properties, "required": ["kind"], "additionalProperties": False}


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise rule("must be a finite number")
    return value


def _literals(hint: Any) -> tuple[Any, ...]:
    if typing.get_origin(hint) is Literal:
        return typing.get_args(hint)
    return tuple(word for arg in _union(hint) for word in _literals(arg))


def _examples(hint: Any) -> list[Any] | None:
    """Values that an option of a type may have, some of many; None for types of which none are known."""
    if typing.get_origin(hint) is Literal:
        return list(typing.get_args(hint))
    if typing.get_origin(hint) is typing.Annotated:
        return _examples(typing.get_args(hint)[0])
    if parts := _union(hint):
        known = [_examples(part) for part in parts]
        return None if None in known else [value for values in known if values for value in values]
    return _EXAMPLES.get(hint)


def _holds_list(hint: Any) -> bool:
    return (typing.get_origin(hint) or hint) in _LISTS or any(_holds_list(arg) for arg in _union(hint))


def _union(hint: Any) -> tuple[Any, ...]:
    """The alternatives of a union; nothing for any other type."""
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else ()


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    if isinstance(value, list):
        return "_".join(map(_text, value))
    plain = "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return re.sub(r"[^A-Za-z0-9._=-]", "_", plain.replace("e+", "e"))
