"""Settings that nothing in a scenario looks at: refused where somebody asks for an effect, else told by `show`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aggregator.contract.protocol import Place
from federation.secure_aggregation.plan import Servers
from scenarios.settings.label_rules import are_real
from scenarios.settings.protocol_options import (
    BASELINES,
    CONSTANT,
    NOISE_FREE,
    Protocol,
    default_kind,
    place,
    requires,
    spending,
    task,
    without_noise,
)
from scenarios.settings.sections import Data, Parties, Privacy
from scenarios.settings.values import all_values
from scenarios.settings.yaml_rules import KeyPath


def unused(data: Data, parties: Parties, protocols: Sequence[Protocol]) -> Iterator[tuple[KeyPath, str]]:
    """(key path, why) of settings that are for class ratios, in a scenario that has none."""
    kinds = [protocol.kind for protocol in protocols]
    first = default_kind(protocols) or kinds[0]
    if data.targets is not None and not task(kinds).targets:
        yield ("data", "targets"), f"are sets to estimate class ratios of, which {first} does not do; remove it"
    if requires(first).bags:
        return
    if set(all_values(data.rows_per_person)) != {1}:
        yield ("data", "rows_per_person"), f"is for bags that persons count in, and {first} has none; remove it"
    if any(bags != 1 for bags in all_values(parties.bags)):
        yield ("parties", "bags"), f"have label counts of their own, which {first} does not ask for; remove it"


def unsummed(servers: Servers, protocols: Sequence[Protocol]) -> Iterator[tuple[KeyPath, str]]:
    """(key path, why) of other servers than the usual one, where no protocol has sums for them."""
    if servers != "one" and not _summed(protocols):
        yield ("servers",), f"{servers} is for secure sums, and no protocol has any; remove it, or set trust: secure"


def idle(data: Data, protocols: Sequence[Protocol], privacy: Privacy) -> Iterator[tuple[KeyPath, str]]:
    """(key path, why) of settings that make no difference beside the protocols, whatever their values.

    They stay when protocols are exchanged for others, and so they are not refused.
    """
    real = are_real(data, protocols)
    if not any(_trains(protocol.kind, real) for protocol in protocols):
        yield ("parties", "classifier"), "no protocol or baseline trains it"
    if not _summed(protocols):
        yield ("servers",), "no protocol has secure sums"
    spent = [
        spending(protocol.kind, options, privacy.epsilon[0], privacy.delta)
        for protocol in protocols
        if protocol.kind not in BASELINES
        for options, _ in protocol.choices()
        if not without_noise(protocol.kind, options)
    ]
    if not spent:
        text = "no protocol adds noise"
        yield from ((path, text) for path in (("privacy", "epsilon"), ("privacy", "delta"), ("trials", "noise")))
    elif all(one is not None and one[1] == 0 for one in spent):  # what promises nothing may use it all the same
        yield ("privacy", "delta"), "no noise uses it"


def _summed(protocols: Sequence[Protocol]) -> bool:
    """Whether parties of any variant share one noise."""
    return any(
        place(protocol.kind, options) is Place.SHARES for protocol in protocols for options, _ in protocol.choices()
    )


def _trains(kind: str, real: bool) -> bool:
    """Whether a protocol or baseline trains the classifier of the parties, where labels are `real` numbers or not."""
    if kind in BASELINES:
        return kind not in (CONSTANT, NOISE_FREE) and not real
    return requires(kind).classifier
