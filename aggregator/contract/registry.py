"""Protocols, tasks and kinds of models by name, this project's own and those of other packages; checked when loaded."""

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any, get_type_hints

from aggregator.contract.protocol import Protocol, Refused, Rule, Task
from aggregator.releases.model_files import ReleasedFile
from federation.contract.errors import InputError
from federation.contract.plugins import Installed, find, installed
from federation.contract.validation import typed

PROTOCOLS, MODELS, TASKS = "federation.protocols", "federation.models", "federation.tasks"
_DECLARED = ("requires", "task", "model")


def protocol_names() -> list[str]:
    """Names of the installed protocols, sorted; loads none of them.

    Examples:
        >>> "soft_vote" in protocol_names()
        True
    """
    return list(installed(PROTOCOLS))


def protocol(name: str) -> type[Protocol]:
    """The protocol's options class, which holds to the contract.

    Raises `InputError` if it is unknown, cannot be imported, or lacks something, with what it lacks.

    Examples:
        >>> protocol("label_sums")(noise="gaussian").noise
        'gaussian'
    """
    return _checked(find(PROTOCOLS, "protocol", name))


def configured(found: type[Protocol], options: Mapping[str, Any]) -> Protocol:
    """A protocol with plain options. Raises `InputError` for options that it does not have, or not of that type.

    Examples:
        >>> configured(protocol("label_sums"), {"noise": 1})
        Traceback (most recent call last):
        federation.contract.errors.InputError: NoisyLabelSums cannot have the options {'noise': 1}: noise must be
        Literal['auto', 'gaussian', 'pure', 'off'], got 1
    """
    hints = get_type_hints(found)
    try:
        for option, value in options.items():
            typed(hints.get(option, Any), value, option)
        return found(**options)
    except TypeError as error:
        raise InputError(f"{found.__name__} cannot have the options {dict(options)!r:.200}: {error}") from error


def model(name: str) -> type[ReleasedFile[Any]]:
    """The class of a kind of released models. Raises `InputError` as `protocol`."""
    found = find(MODELS, "kind of model", name)
    loaded = found.load()
    if not (isinstance(loaded, type) and issubclass(loaded, ReleasedFile)):
        raise InputError(f"{found.described} does not derive from ReleasedFile; its package must be repaired")
    return loaded


def task(name: str) -> Task:
    """An installed task. Raises `InputError` if it is unknown or cannot be used."""
    return _task(find(TASKS, "task", name))


def lacks(found: Any) -> list[str]:
    """What an object lacks to be a protocol, in words; nothing for one that holds to the contract."""
    if not isinstance(found, type):
        return ["a class"]
    missing = []
    if not issubclass(found, Protocol):
        missing.append(f"{Protocol.__name__} of {Protocol.__module__} among its bases")
    if "__dataclass_params__" not in vars(found) or not vars(found)["__dataclass_params__"].frozen:
        missing.append("@dataclass(frozen=True)")
    said = {name for base in found.__mro__ for name in vars(base)}
    missing += [name for name in _DECLARED if name not in said]
    rules = getattr(found, "why_default", ())
    if not (isinstance(rules, tuple) and all(isinstance(rule, Rule) for rule in rules)):
        missing.append(f"a tuple of {Rule.__name__} of {Rule.__module__} as why_default")
    suggested = getattr(found, "suggested", ())
    listed = isinstance(suggested, tuple) and all(isinstance(one, Mapping) for one in suggested)
    if not (listed or isinstance(suggested, Refused)):
        missing.append(f"a tuple of options, or a {Refused.__name__} of {Refused.__module__}, as suggested")
    left: frozenset[str] = found.__abstractmethods__ if issubclass(found, Protocol) else frozenset()
    missing += [f"{name}()" for name in sorted(Protocol.__abstractmethods__) if name in left or name not in said]
    if dataclasses.is_dataclass(found):
        missing += [
            f"a default of the option {option.name}"
            for option in dataclasses.fields(found)
            if option.default is dataclasses.MISSING and option.default_factory is dataclasses.MISSING
        ]
    return missing


@cache
def _task(found: Installed) -> Task:
    loaded = found.load()
    if not isinstance(loaded, Task):
        raise InputError(f"{found.described} is no Task of aggregator.contract.protocol; its package must be repaired")
    return loaded


@cache
def _checked(found: Installed) -> type[Protocol]:
    loaded = found.load()
    missing = lacks(loaded)
    if not missing:
        missing = [
            f"an installed {what} '{named}'"
            for what, group, named in (("task", TASKS, loaded.task), ("kind of model", MODELS, loaded.model))
            if named not in installed(group)
        ]
    if missing:
        raise InputError(
            f"{found.described} is no protocol: it lacks {', '.join(missing)}; its package must be repaired"
        )
    checked: type[Protocol] = loaded
    return checked
