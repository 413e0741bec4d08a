"""The entries under `protocols`: options checked by the protocol's own class, lists expanded to variants."""

import contextlib
import dataclasses
import itertools
import json
import re
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError, create_model
from pydantic_core import CoreSchema, core_schema

from aggregator.contract import registry
from aggregator.contract.protocol import Place, Promise, Refused, Requires, Task
from aggregator.contract.protocol import Protocol as OptionsClass
from aggregator.trial.plan import PublicNumbers
from federation.contract.errors import FederationError, InputError, nearest_name
from federation.contract.guarantee import NoGuarantee
from scenarios.settings.loader import KeyPath
from scenarios.settings.problems import MISSING, one_of, problems, refuse, rule, shown
from scenarios.settings.values import FileName, Section, Sweep, swept_keys

BASELINES = POOLED, INDIVIDUAL, CONSTANT, NOISE_FREE = ("pooled", "individual", "constant", "noise_free")
CLASSIFYING_BASELINES = {  # these have no meaning for tasks that do not name them
    INDIVIDUAL: "trains classifiers",
    CONSTANT: "predicts a class",
}
_LISTS = (list, tuple, set, frozenset)
_EXAMPLES = (None, False, True, 1, 2, 10, 100, 0.01, 0.1, 0.5)  # of what options may be


DEFAULT = "default"  # stands for the default variant on the command line
_OWN = {"kind", "name"}  # keys of an entry that are no options
_TRUST = "trust"  # an option of every protocol, which a scenario says once for all


class _Options(Section):
    """What the class of one protocol accepts, besides its kind and name; scalars may be swept."""

    model_config = ConfigDict(allow_inf_nan=False, use_attribute_docstrings=False)

    kind: str


@dataclass(frozen=True)
class Protocol:
    """One entry: its kind, every option (defaults filled in), and the values of those that are swept.

    Options are kept as JSON has them. `name` is what somebody calls its variants, None what `variant_name` does.

    Examples:
        >>> entry = Protocol.parse({"kind": "soft_vote", "noise": ["pure", "off"]})
        >>> [variant_name(entry.kind, options) for options, _ in entry.choices()]
        ['soft_vote', 'soft_vote-off']
    """

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    sweeps: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    name: str | None = None

    def named(self, options: Mapping[str, Any]) -> str:
        """What the variant with these options is called: its name with what is swept, or the automatic one.

        Examples:
            >>> entry = Protocol.parse({"kind": "soft_vote", "name": "mine", "noise": ["pure", "off"]})
            >>> [entry.named(options) for options, _ in entry.choices()]
            ['mine', 'mine-off']
        """
        if self.name is None:
            return variant_name(self.kind, options)
        return variant_name(
            self.kind, {**_defaults(self.kind), **{name: options[name] for name in self.sweeps}}, self.name
        )

    def choices(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """(all options, the swept ones among them) of each variant; the last swept option changes fastest."""
        for values in itertools.product(*self.sweeps.values()):
            swept = dict(zip(self.sweeps, values, strict=True))
            yield {**self.options, **swept}, swept

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

    def untrusted(self) -> list[str]:
        """Why variants cannot work under the trust that they are given; none if they can."""
        found = ((options.get(_TRUST), place(self.kind, options)) for options, _ in self.choices())
        return list(dict.fromkeys(f"trust: {trust}: {one.reason}" for trust, one in found if isinstance(one, Refused)))

    def to_plain(self) -> dict[str, Any]:
        """As in a scenario file."""
        lists = {name: list(values) for name, values in self.sweeps.items()}
        return {"kind": self.kind, **({} if self.name is None else {"name": self.name}), **self.options, **lists}

    def shown(self) -> dict[str, Any]:
        """As `to_plain`, without trust in the aggregator and options that do not apply; `parse` of it is this entry."""
        defaults = _defaults(self.kind)
        hidden = [
            name
            for name, value in self.options.items()
            if name not in self.sweeps
            and value == defaults[name]
            and (name == _TRUST or not any(_applies(self.kind, name, options) for options, _ in self.choices()))
        ]
        return {name: value for name, value in self.to_plain().items() if name not in hidden}

    @classmethod
    def parse(cls, entry: Any) -> "Protocol":
        """Check an entry of a scenario file; raises pydantic errors for each thing that is wrong with it."""
        if not isinstance(entry, dict):
            raise rule("must be a section such as {kind: soft_vote}")
        kind, names = entry.get("kind"), kinds()
        if kind not in names:
            text = f"must be {one_of(names)}, got {shown(kind)}{nearest_name(str(kind), names)}"
            refuse([(("kind",), text if "kind" in entry else MISSING)])
        try:
            model = _model(kind)
        except InputError as error:
            refuse([(("kind",), str(error))])
        try:
            given = model.model_validate_json(json.dumps(entry), strict=True)
        except ValidationError as error:
            refuse((path, _why_refused(entry, path) or text) for path, text in problems(error, model, _option_path))
        name = getattr(given, "name", None)
        if name in (*names, DEFAULT):
            refuse([(("name",), f"must not be '{name}', which is taken; choose another")])
        options = given.model_dump(mode="json", exclude=_OWN)
        sweeps = {key: tuple(options[key]) for key in swept_keys(model) if isinstance(getattr(given, key), tuple)}
        parsed = cls(kind, {**options, **{name: values[0] for name, values in sweeps.items()}}, sweeps, name)
        parsed._try()
        return parsed

    def _try(self) -> None:
        """Build each variant, for the checks that a class makes of its options together.

        An option that makes no difference in any of them is refused; in some, it is what a sweep compares with.
        """
        chosen = [options for options, _ in self.choices()]
        if texts := [text for text in dict.fromkeys(_refusal(self.kind, options) for options in chosen) if text]:
            refuse(((), text) for text in texts)
        defaults = _defaults(self.kind)
        idle = [_idle(self.kind, options) for options in chosen]
        strays = [
            ((name,), f"makes no difference with {why}; remove it")
            for name, why in idle[0].items()
            if all(name in told for told in idle) and (name in self.sweeps or self.options[name] != defaults[name])
        ]
        if strays:
            refuse(strays)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls.parse, serialization=core_schema.plain_serializer_function_ser_schema(cls.to_plain)
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"oneOf": list(_json_schemas())}


def kinds() -> list[str]:
    """Every kind that a scenario may list: installed protocols, then the baselines."""
    return [*registry.protocol_names(), *BASELINES]


def variant_name(kind: str, options: Mapping[str, Any], name: str | None = None) -> str:
    """`kind`, or `name` in its place, and the options that differ from their defaults, in field order; a folder name.

    A literal is named by its value (`soft_vote-output-published`) unless another option has that value too;
    everything else as `name=value`.

    Examples:
        >>> options = Protocol.parse({"kind": "soft_vote", "perturb": "output", "regularisation": 1e-3}).options
        >>> variant_name("soft_vote", options)
        'soft_vote-output-regularisation=0.001'
    """
    defaults = _defaults(kind)
    words = {name: _words(known.annotation) for name, known in _model(kind).model_fields.items()}
    every = [word for listed in words.values() for word in listed]
    parts = [name or kind]
    for option, default in defaults.items():
        value = options[option]
        if default != value:
            by_value = value in words[option] and every.count(value) == 1
            parts.append(str(value) if by_value else f"{option}={_text(value)}")
    return "-".join(parts)


def is_default(kind: str, options: Mapping[str, Any], trust: str = "aggregator") -> bool:
    """Whether every option has its default, and parties have the trust that the scenario says."""
    defaults = _defaults(kind)
    return dict(options) == {**defaults, **({_TRUST: trust} if _TRUST in defaults else {})}


def default_kind(protocols: Iterable[Protocol]) -> str | None:
    """The kind whose defaults a user gets without choosing: the first that is no baseline."""
    return next((protocol.kind for protocol in protocols if protocol.kind not in BASELINES), None)


def task(kinds: Iterable[str]) -> Task:
    """What protocols of these kinds are for together: the task of the first that is no baseline.

    Classification where there are baselines only.

    Examples:
        >>> task(["pooled", "label_sums"]).name, task(["pooled"]).name
        ('regression', 'classification')
    """
    first = next((kind for kind in kinds if kind not in BASELINES), None)
    return registry.task("classification" if first is None else registry.protocol(first).task)


def requires(kind: str) -> Requires:
    """What a kind needs of data and parties; nothing for a baseline.

    Examples:
        >>> requires("label_sums").labels, requires("class_ratio").bags, requires("pooled").bags
        ('real', True, False)
    """
    return Requires() if kind in BASELINES else registry.protocol(kind).requires


def wanted_features(kinds: Iterable[Any]) -> tuple[Any, ...]:
    """The feature map that the first of these kinds which is an installed protocol takes by default, if it says so."""
    known = registry.protocol_names()
    with contextlib.suppress(InputError):  # it cannot be used, as `Protocol.parse` will say
        return next((registry.protocol(kind).requires.features for kind in kinds if kind in known), ())
    return ()


def misplaced(protocols: Sequence[Protocol]) -> Iterator[tuple[int, str]]:
    """(position, why) of the protocols that do not suit the task of the first: a scenario is scored by one measure."""
    common, first = task(protocol.kind for protocol in protocols), default_kind(protocols)
    for position, kind in enumerate(protocol.kind for protocol in protocols):
        own = common if kind in BASELINES else task([kind])
        if own != common:
            tasks = f"{kind} has the task {own.name}, {first} the task {common.name}"
            yield position, f"{tasks}; a scenario has one, remove either"
        elif kind in (POOLED, *CLASSIFYING_BASELINES) and kind not in common.baselines and common.labels == "classes":
            does = CLASSIFYING_BASELINES.get(kind, "has no meaning here")
            yield position, f"the baseline {kind} {does}, which {first} cannot be compared with; remove it"


def promise(kind: str, options: Mapping[str, Any], epsilon: float, public: PublicNumbers) -> Promise | None:
    """What a release of a variant promises by public numbers; None for a baseline, which has none."""
    if kind in BASELINES:
        return None
    return registry.protocol(kind)(**options).promised(public, epsilon)


def spending(kind: str, options: Mapping[str, Any], epsilon: float, delta: float) -> tuple[float, float] | None:
    """The (epsilon, delta) that a release will be charged at most; None without a guarantee.

    Examples:
        >>> [spending("soft_vote", {"noise": noise}, 2.0, 1e-6) for noise in ("pure", "gaussian", "off")]
        [(2.0, 0.0), (2.0, 1e-06), None]
    """
    promised = promise(kind, options, epsilon, PublicNumbers(delta))
    if promised is None or isinstance(promised.spends, NoGuarantee):
        return None
    return promised.spends.epsilon, promised.spends.delta


def place(kind: str, options: Mapping[str, Any]) -> Place | Refused:
    """Where the noise of a variant is made; nowhere of a baseline."""
    return Place.NOWHERE if kind in BASELINES else registry.protocol(kind)(**options).place


def without_noise(kind: str, options: Mapping[str, Any]) -> bool:
    """Whether a variant adds no noise anywhere, so that it has a single release whatever epsilons are asked for."""
    return kind not in BASELINES and place(kind, options) is Place.NOWHERE


def _class(kind: str) -> type[OptionsClass] | None:
    return None if kind in BASELINES else registry.protocol(kind)


def _model(kind: str) -> type[_Options]:
    return _model_of(kind, _class(kind))


@cache
def _model_of(kind: str, options_type: type[OptionsClass] | None) -> type[_Options]:
    """A model of the fields of a kind's class, and of what its variants are called; a baseline has none."""
    fields: dict[str, Any] = {"kind": (Literal[kind], ...)}
    if options_type is not None:
        fields["name"] = (FileName | None, None)
        hints = typing.get_type_hints(options_type, include_extras=True)
        for option in dataclasses.fields(options_type):
            if option.name in _OWN:
                raise InputError(f"the protocol '{kind}' has an option '{option.name}'; its package must be repaired")
            if option.init:
                hint = hints[option.name]
                value = option.default if option.default_factory is dataclasses.MISSING else option.default_factory()
                fields[option.name] = (hint if _holds_list(hint) else Annotated[hint, Sweep()], value)
    return create_model(kind, __base__=_Options, **fields)


def _defaults(kind: str) -> dict[str, Any]:
    return _model(kind).model_construct().model_dump(mode="json", exclude=_OWN)


def _option_path(location: tuple[str | int, ...]) -> KeyPath:
    """The option and positions in its list; what else pydantic says are alternatives of its type."""
    option, *inner = location
    return (option, *(key for key in inner if isinstance(key, int)))


def _why_refused(entry: Mapping[str, Any], path: KeyPath) -> str | None:
    """What the class knows of a word that it does not allow, if anything."""
    options_type, (option, *inner) = _class(entry["kind"]), path
    value = entry[str(option)]
    for key in inner:
        value = value[key]
    return options_type.why_refused(str(option), value) if options_type is not None and isinstance(value, str) else None


def _idle(kind: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Options that make no difference, and beside which others, by the class."""
    options_type = _class(kind)
    return {} if options_type is None else options_type(**options).idle()


def _refusal(kind: str, options: Mapping[str, Any]) -> str | None:
    """What the class says against options together, None when it takes them."""
    try:
        _idle(kind, options)
    except (FederationError, ValueError, TypeError) as error:
        return str(error)
    return None


def _applies(kind: str, name: str, options: Mapping[str, Any]) -> bool:
    """Whether an option makes a difference beside the others: the class says not, or refuses every other value."""
    if name in _idle(kind, options):
        return False
    model = _model(kind)
    fitting = []
    for other in (*_words(model.model_fields[name].annotation), *_EXAMPLES):
        changed = {**options, name: other}
        with contextlib.suppress(ValidationError):
            model.model_validate_json(json.dumps({"kind": kind, **changed}), strict=True)
            fitting.append(changed)
    return not fitting or any(changed != options and _refusal(kind, changed) is None for changed in fitting)


def _json_schemas() -> Iterator[dict[str, Any]]:
    """Yield the JSON schemas of all kinds except those whose package is broken."""
    for kind in kinds():
        with contextlib.suppress(InputError):
            yield _model(kind).model_json_schema()


def _words(hint: Any) -> list[str]:
    """The texts that a literal allows."""
    if typing.get_origin(hint) is Literal:
        return [word for word in typing.get_args(hint) if isinstance(word, str)]
    return [word for arg in typing.get_args(hint) for word in _words(arg)]


def _holds_list(hint: Any) -> bool:
    return (typing.get_origin(hint) or hint) in _LISTS or any(map(_holds_list, typing.get_args(hint)))


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    if isinstance(value, list):
        return "_".join(map(_text, value))
    plain = "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return re.sub(r"[^A-Za-z0-9._=-]", "_", plain.replace("e+", "e"))
