"""Protocols by name: what one lacks is named at once; a broken one fails where it is used only."""

import re
from dataclasses import dataclass, field
from typing import ClassVar

import pytest
from support.packages import CAUSE, install

from aggregator.contract.protocol import Place, Protocol, Refused, Requires, Rule
from aggregator.contract.registry import configured, lacks, protocol, protocol_names
from federation.contract.errors import InputError
from scenarios.commands.inspect import list_choices, schema

BASE = "Protocol of aggregator.contract.protocol among its bases"
DATACLASS = "@dataclass(frozen=True)"
DECLARED = ["requires", "task", "model"]
METHODS = ["begin()", "noise_at()", "promise()", "worst_case()"]

SAID = {"requires": Requires(), "task": "classification", "model": "linear"}


DONE = {
    "noise_at": lambda self, trust: Place.NOWHERE,
    "promise": lambda self, public, epsilon, trust: None,
    "begin": lambda self, world, epsilon, draws: None,
    "worst_case": lambda self, units, public: None,
}


def made(*left_out, bases=(Protocol,), frozen=True, options=None):
    """A class that says and does everything but what is left out; `options` are its fields with their defaults."""
    options = options or {}
    members = {name: member for name, member in {**SAID, **DONE}.items() if name not in left_out}
    annotations = {name: ClassVar for name in SAID} | {name: int for name in options}
    given = {name: default for name, default in options.items() if default is not ...}
    found = type("Made", bases, {**members, **given, "__annotations__": annotations})
    return found if frozen is None else dataclass(frozen=frozen)(found)


def test_what_holds_to_the_contract_lacks_nothing_and_reasons_of_defaults_are_rules():
    assert lacks(made(options={"size": 3, "sizes": field(default_factory=list)})) == []
    assert [lacks(protocol(name)) for name in protocol_names()] == [[]] * len(protocol_names())
    found = made()
    for why in ("the default: it is good", ["rule"], ("rule",), None):
        found.why_default = why
        assert lacks(found) == ["a tuple of Rule of aggregator.contract.protocol as why_default"]
    found.why_default = (Rule("size: 3", "it is odd", "digits: .29"),)
    assert lacks(found) == []
    for suggested in (({"noise": "pure"},), Refused("it is a reference")):
        found.suggested = suggested
        assert lacks(found) == []
    found.suggested = ["noise"]
    assert "as suggested" in lacks(found)[0]


@pytest.mark.parametrize(("found", "missing"), [
    (made()(), ["a class"]), ("soft_vote", ["a class"]), (None, ["a class"]), (made(bases=()), [BASE]),
    (made(frozen=None), [DATACLASS]), (made(bases=(), frozen=False), [BASE, DATACLASS]),
    (made(options={"first": ..., "second": ..., "third": 3}),
     ["a default of the option first", "a default of the option second"]),
    (type("Nothing", (), {}), [BASE, DATACLASS, *DECLARED, *METHODS]),
    (type("Derived", (Protocol,), {}), [DATACLASS, *DECLARED, *METHODS]),
    (made("task", "promise", bases=(), frozen=False, options={"size": ...}),
     [BASE, DATACLASS, "task", "promise()", "a default of the option size"]),
])  # fmt: skip
def test_all_that_is_missing_is_named_at_once(found, missing):
    assert lacks(found) == missing


@pytest.mark.parametrize(
    ("name", "said"), [*((name, name) for name in DECLARED), *((name, f"{name}()") for name in DONE)]
)
@pytest.mark.parametrize("bases", [(Protocol,), ()])
def test_what_is_not_said_is_missed_though_it_is_declared(name, said, bases):
    assert lacks(made(name, bases=bases))[-1:] == [said]
    assert len(lacks(made(name, bases=bases))) == 2 - len(bases)


MODULE = """\
from __future__ import annotations
from dataclasses import dataclass, replace
from aggregator.protocols.soft_vote.soft_vote import SoftVote

class Bare:
    pass

@dataclass(frozen=True)
class Astray(SoftVote):
    task = "weather"
    model = "crystal_ball"

@dataclass(frozen=True)
class Whole(SoftVote):
    pass
"""


def test_an_installed_protocol_is_refused_with_all_that_it_lacks(import_folder):
    lines = [f"{name.lower()} = pack_of_protocols:{name}" for name in ("Bare", "Astray", "Whole")]
    install(import_folder, "Pack-of-Protocols", MODULE, {"federation.protocols": lines})
    missing = ", ".join([BASE, DATACLASS, *DECLARED, *METHODS])
    with pytest.raises(InputError) as refused:
        protocol("bare")
    assert str(refused.value) == (
        "the entry point 'bare' of the package 'Pack-of-Protocols' (federation.protocols: pack_of_protocols:Bare) is "
        f"no protocol: it lacks {missing}; its package must be repaired"
    )
    assert protocol("whole")().noise == "pure"
    with pytest.raises(InputError, match=r"weather.*crystal_ball"):
        protocol("astray")


def test_what_cannot_be_imported_is_listed_with_the_cause_and_named_when_used(broken_package, capsys):
    assert {"broken", "soft_vote"} <= set(protocol_names())
    with pytest.raises(InputError, match="the entry point 'broken' of " + CAUSE.format("protocols", "Broken")):
        protocol("broken")
    assert protocol("soft_vote").__name__ == "SoftVote"
    list_choices()
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  broken ")]
    assert re.search(r"broken.*Broken-Pack", line)
    schema()
    declared = capsys.readouterr().out
    assert '"const": "mean_operator"' in declared
    assert '"const": "broken"' not in declared


@pytest.mark.parametrize("options", [{"noise": 1}, {"noise": []}, {"nois": "pure"}, {"protect": None}])
def test_options_that_a_protocol_does_not_have_are_refused(options):
    with pytest.raises(InputError):
        configured(protocol("label_sums"), options)
