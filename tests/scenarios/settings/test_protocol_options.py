# ruff: noqa: E501
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field, TypeAdapter, ValidationError
from support.fake_protocols import KINDS, Fake

from aggregator.contract import registry
from aggregator.protocols.soft_vote.soft_vote import SoftVote
from federation.contract.errors import InputError
from scenarios.settings.problems import problems
from scenarios.settings.protocol_options import (
    Protocol,
    default_kind,
    is_default,
    kinds,
    misplaced,
    spending,
    task,
    variant_name,
)
from scenarios.settings.schema import resolve

pytestmark = pytest.mark.usefixtures("protocols")


def _problems(entry: Any) -> dict[str, str]:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(Protocol).validate_python(entry)
    return {".".join(map(str, path)): text for path, text in problems(caught.value)}


def test_defaults_are_filled_in_and_baselines_take_no_options() -> None:
    protocol = Protocol.parse({"kind": "soft_vote", "rounds": 5})
    assert protocol.options == {
        "trust": "aggregator", "perturb": "statistic", "sensitivity": None, "noise": "pure", "relabel": "on", "regularisation": None,
        "rounds": 5, "fast": False, "bins": [1, 2], "note": "",
    }  # fmt: skip
    assert Protocol.parse({"kind": "pooled"}).options == {}
    assert kinds() == ["count", "ratio", "slope", "soft_vote", "pooled", "individual", "constant", "noise_free"]
    assert _problems({"kind": "pooled", "noise": "off"}) == {"noise": "unknown key; allowed: kind"}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"kind": "soft_voet"}, {"kind": "did you mean 'soft_vote'?"}),
        ({"noise": "off"}, {"kind": "missing"}),
        ("pooled", {"": "must be a section such as {kind: soft_vote}, got the text"}),
        ({"kind": "count", "size": None}, {"size": "must be a whole number, got null"}),
        ({"kind": "soft_vote", "noise": "pur"}, {"noise": "must be one of pure, off, got the text \"pur\"; did you mean 'pure'?"}),
        ({"kind": "soft_vote", "rounds": "5"}, {"rounds": 'must be a whole number, got the text "5"'}),
        ({"kind": "soft_vote", "rounds": True}, {"rounds": "must be a whole number, got true"}),
        ({"kind": "soft_vote", "fast": 1}, {"fast": "must be true or false, got 1"}),
        ({"kind": "soft_vote", "regularisation": [1, "x", "y"]}, {"regularisation.1": "number", "regularisation.2": "number"}),
        ({"kind": "soft_vote", "rounds": []}, {"rounds": "must not be empty"}),
        ({"kind": "soft_vote", "regularisation": [1, -1.0]}, {"": "regularisation must be a positive number, got -1.0"}),
        ({"kind": "soft_vote", "unrelated": 4, "nois": "off"}, {"unrelated": "unknown key", "nois": "did you mean 'noise'?"}),
    ],
)  # fmt: skip
def test_each_mistake_is_named(entry: Any, expected: dict[str, str]) -> None:
    found = _problems(entry)
    assert found.keys() == expected.keys()
    for path, text in expected.items():
        assert text in found[path]


def test_lists_sweep_scalars_but_not_options_that_are_lists() -> None:
    protocol = Protocol.parse({"kind": "soft_vote", "bins": [3, 4], "rounds": [1, 2], "noise": ["off", "pure"]})
    assert protocol.options["bins"] == [3, 4]
    assert protocol.sweeps == {"noise": ("off", "pure"), "rounds": (1, 2)}
    assert [swept for _, swept in protocol.choices()] == [
        {"noise": noise, "rounds": rounds} for noise in ("off", "pure") for rounds in (1, 2)
    ]
    assert Protocol.parse(protocol.to_plain()) == protocol


@pytest.mark.parametrize(
    ("kind", "options", "name"),
    [
        ("soft_vote", {}, "soft_vote"),
        ("soft_vote", {"perturb": "output", "sensitivity": "published"}, "soft_vote-output-published"),
        ("soft_vote", {"regularisation": 1e-4, "perturb": "output"}, "soft_vote-output-regularisation=0.0001"),
        ("soft_vote", {"regularisation": 10}, "soft_vote-regularisation=10"),
        ("soft_vote", {"regularisation": 1e20}, "soft_vote-regularisation=1e20"),
        ("soft_vote", {"noise": "off"}, "soft_vote-noise=off"),  # `relabel` has that value too
        ("soft_vote", {"fast": True, "bins": [3, 4], "note": "a/b c"}, "soft_vote-fast=true-bins=3_4-note=a_b_c"),
        ("soft_vote", {"rounds": 3, "noise": "pure"}, "soft_vote"),
        ("count", {"size": 2}, "count-size=2"),
        ("count", {"words": ["a"]}, "count"),  # the default has a factory
    ],
)
def test_names_say_what_differs_from_the_defaults(kind: str, options: dict[str, Any], name: str) -> None:
    protocol = Protocol.parse({"kind": kind, **options})
    assert variant_name(kind, protocol.options) == name
    if kind == "soft_vote":
        assert is_default(kind, protocol.options) == (name == kind)


_WORDS = {"perturb": ["statistic", "output"], "sensitivity": ["published", "tight", None], "noise": ["pure", "off"]}
_WORDS |= {"relabel": ["on", "off"], "fast": [False, True]}
_NUMBERS = {"regularisation": st.none() | st.floats(1e-300, 1e300), "rounds": st.integers()}
_OPTIONS = st.fixed_dictionaries({name: st.sampled_from(words) for name, words in _WORDS.items()} | _NUMBERS)


@settings(derandomize=True)
@given(_OPTIONS, _OPTIONS)
def test_names_are_folder_names_and_tell_variants_apart(a: dict[str, Any], b: dict[str, Any]) -> None:
    full = [{"trust": "secure", "bins": [1, 2], "note": "", **options} for options in (a, b)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "protocol", KINDS.__getitem__)
        names = [variant_name("soft_vote", options) for options in full]
    assert (names[0] == names[1]) == (full[0] == full[1])
    assert all(re.fullmatch(r"[A-Za-z0-9._=-]+", name) for name in names)


@dataclass(frozen=True)
class Sized(Fake):
    """An option without a default, so that its variants would have no default either."""

    size: int


class Loose(Fake):
    """No dataclass."""


@dataclass(frozen=True)
class Named(Fake):
    """An option that is called as something else of an entry is."""

    name: str = ""


def test_a_protocol_that_breaks_the_contract_is_refused_where_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = "Protocol of aggregator.contract.protocol among its bases, @dataclass(frozen=True), requires, task, "
    everything += "model, begin(), noise_at(), promise(), worst_case()"
    lacking = {object: everything, Loose: "@dataclass(frozen=True)", Sized: "a default of the option size"}
    for broken, lacks in lacking.items():
        monkeypatch.setitem(KINDS, "soft_vote", broken)
        text = f"the fake 'soft_vote' is no protocol: it lacks {lacks}; its package must be repaired"
        assert _problems({"kind": "soft_vote", "size": 3}) == {"kind": text}
    monkeypatch.setitem(KINDS, "named", Named)
    said = "the protocol 'named' has an option 'name'; its package must be repaired"
    assert _problems({"kind": "named"}) == {"kind": said}


def test_no_option_is_infinite_and_classes_are_asked_about_words_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KINDS["soft_vote"], "why_refused", lambda name, word: {word: None}[word])
    for option, value, path, said in (
        ("regularisation", float("nan"), "regularisation", "must be a finite number, got .nan"),
        ("regularisation", [1.0, float("inf")], "regularisation.1", "must be a finite number, got .inf"),
        ("noise", {"of": "pure"}, "noise", "must be one of pure, off, got {of: pure}"),
    ):
        assert _problems({"kind": "soft_vote", option: value}) == {path: said}


@dataclass(frozen=True)
class Ruled(Fake):
    """Options of which some belong to choices of others."""

    how: Literal["a", "b"] = "a"
    only: Literal["one"] = "one"
    strength: float | None = None
    deep: bool = False
    many: Annotated[int, Field(ge=1)] = 3
    note: str = ""

    def __post_init__(self) -> None:
        if self.how == "a" and (self.strength is not None or self.many != 3):
            raise InputError("strength and many belong to how: b")
        if self.how == "b" and self.deep:
            raise InputError("deep belongs to how: a")

    def idle(self) -> dict[str, str]:
        """Notes are for the deep."""
        return {} if self.deep else {"note": "deep: false"}


@pytest.mark.parametrize(
    ("entry", "hidden"),
    [
        ({"kind": "ruled"}, {"only", "strength", "many", "note"}),
        ({"kind": "ruled", "how": "b"}, {"only", "deep", "note"}),
        ({"kind": "ruled", "how": "b", "strength": 0.5}, {"only", "deep", "note"}),
        ({"kind": "ruled", "how": ["a", "b"]}, {"only", "note"}),
        ({"kind": "ruled", "how": "b", "only": ["one"], "many": [3, 4]}, {"deep", "note"}),
        ({"kind": "ruled", "deep": [False, True]}, {"only", "strength", "many"}),
        ({"kind": "pooled"}, set()),
    ],
)
def test_what_does_not_apply_is_not_shown(monkeypatch: pytest.MonkeyPatch, entry: Any, hidden: set[str]) -> None:
    monkeypatch.setitem(KINDS, "ruled", Ruled)
    protocol = Protocol.parse(entry)
    always = set() if entry["kind"] == "pooled" else {"trust"}
    assert protocol.to_plain().keys() - protocol.shown().keys() == hidden | always
    assert Protocol.parse(protocol.shown()) == protocol


def test_what_makes_no_difference_in_any_variant_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "ruled", Ruled)
    Protocol.parse({"kind": "ruled", "note": ""})
    for note in ("x", ["", "x"]):
        assert _problems({"kind": "ruled", "note": note}) == {"note": "makes no difference with deep: false; remove it"}
        Protocol.parse({"kind": "ruled", "note": note, "deep": [False, True]})


def test_the_default_kind_and_the_task_are_those_of_the_first_that_is_no_baseline(monkeypatch) -> None:
    monkeypatch.setitem(KINDS, "ruled", Ruled)
    listed = [Protocol.parse({"kind": kind}) for kind in ("pooled", "ruled", "soft_vote")]
    assert default_kind(listed) == "ruled"
    assert default_kind(listed[:1]) is None
    for names, known in (("soft_vote pooled", "classification"), ("pooled individual", "classification"),
                         ("pooled ratio", "class_ratio")):  # fmt: skip
        assert task(names.split()).name == known


@pytest.mark.parametrize(
    ("listed", "found"),
    [
        (["soft_vote", "count", "pooled", "individual", "constant"], {}),
        (["ratio", "constant", "noise_free"], {}),
        (["pooled", "ratio"], {}),
        (["pooled", "soft_vote", "ratio"], {2: "ratio has the task class_ratio, soft_vote the task classification"}),
        (["ratio", "individual", "soft_vote"], {1: "the baseline individual trains ", 2: "soft_vote has the task"}),
    ],
)
def test_protocols_of_another_task_are_misplaced(listed: list[str], found: dict[int, str]) -> None:
    entries = [Protocol.parse({"kind": kind, **({"size": 1} if kind == "count" else {})}) for kind in listed]
    texts = dict(misplaced(entries))
    assert texts.keys() == found.keys()
    assert all(words in texts[position] for position, words in found.items())


@pytest.mark.parametrize(
    ("kind", "options", "spent"),
    [
        ("soft_vote", {}, (0.5, 0.0)),
        ("soft_vote", {"noise": "off"}, None),
        ("count", {"size": 1}, None),
        ("ratio", {}, (0.5, 1e-6)),
        ("ratio", {"noise": "pure"}, (0.5, 0.0)),
        ("ratio", {"noise": "published"}, None),  # it knows that this is no guarantee
        ("ratio", {"noise": "off"}, None),
        ("noisy", {"noise": "gaussian"}, (0.5, 1e-6)),
        ("noisy", {"noise": "pure"}, (0.5, 0.0)),
        ("pooled", {}, None),
    ],
)
def test_what_a_release_will_be_charged_for(kind: str, options: dict[str, Any], spent: Any, monkeypatch) -> None:
    monkeypatch.setitem(KINDS, "noisy", SoftVote)
    assert spending(kind, Protocol.parse({"kind": kind, **options}).options, 0.5, 1e-6) == spent


@pytest.mark.usefixtures("installed_protocols")
def test_a_loss_that_is_not_linear_odd_is_refused_with_the_reason_and_a_linear_learner_needs_no_layers():
    given = {"data": {"source": "breast_cancer"}, "parties": {"count": 1}, "privacy": {"epsilon": 1}}
    for loss in ("hinge", "exponential"):
        with pytest.raises(InputError, match=rf"loss\.1.*'{loss}'"):
            resolve({**given, "protocols": [{"kind": "mean_operator", "loss": ["square", loss]}]})
    linear = resolve({**given, "protocols": [{"kind": "error_marginals", "learner": "linear"}]})
    assert linear.protocols[0].options["learner"] == "linear"
