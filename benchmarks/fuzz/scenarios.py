"""Scenario files: read, checked, promised and planned as `federation validate` and `federation run` do, not trained."""

from __future__ import annotations

import copy
import dataclasses
import random
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from aggregator.contract.registry import protocol, protocol_names
from aggregator.server.releasing import Inquiry
from aggregator.server.variants import Variants
from aggregator.trial.trial import Views, World
from benchmarks.fuzz.inputs import Input, Target
from benchmarks.fuzz.mutation import Mutation, deep
from benchmarks.fuzz.written import written
from scenarios.commands.inspect import validate
from scenarios.data.catalogue import names
from scenarios.runs.runner import preview
from scenarios.runs.trial import worlds
from scenarios.settings.loader import library, parse
from scenarios.settings.protocol_options import BASELINES
from scenarios.settings.schema import Scenario, resolve

ROWS = 60  # of the small file that scenarios may name
_SOURCE = "rows.csv"
_SETTING = "# --set "  # begins a line that is a setting of the command line
_OFTEN = 3  # how often a small scenario is a seed: it can be planned
_FITTING = {"noisy_weighted_llp": {"size": 4}, "weighted_lba": {"size": 4}}  # options that suit few rows
_PLANNED = 40  # worlds, parties and releases that are cheap to plan
_SMALL = (_SOURCE, "digits", "breast_cancer", "diabetes")  # data that any installation has, and loads at once
_ODD_LINES = (
    *("<<: *a", "<<: {a: 1}", "a: &a", "a: *a", "a: &a [*a]", "&a a: 1", "? a", "? [a]: 1", "- ", "-", "---", "..."),
    *("%YAML 1.1", "\t", "a: !!python/object/apply:os.getcwd []", "a: !!float 1", "!!set {a}", "a: |", "a: >-", "a: ["),
    *("]", "a: {", "}"),
    *( "'", '"', "1: 2", "null: 1", "{}: 1", "true: true", "# a", "a: 0x1F", "a: 1_000", "a: 2020-01-01"),
)  # fmt: skip
_BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)


class Scenarios(Target):
    """Scenarios of the library and of every protocol, with other values, keys and marks."""

    name: ClassVar[str] = "scenarios"
    count: ClassVar[int] = 100_000

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (folder / _SOURCE).write_text(_csv(), encoding="utf-8")
        self._sections: Mapping[str, Mapping[str, Sequence[Any]]] = {}
        self._known: dict[str, list[Any]] = {}  # by key alone
        self._trees: dict[bytes, Any] = {}

    def seeds(self) -> Sequence[Input]:
        """The library as it is written and with its defaults written out, and a small scenario of each protocol."""
        texts = [entry.read_text("utf-8") for entry in library().values()]
        plain = [parse(text, "seed")[0] for text in texts]
        full = [resolve(name).to_plain() for name in library()]
        small = [*(_small(name) for name in (*protocol_names(), *BASELINES)), *_further()]
        sources = [{"data": {"source": name}} for name in (*names(), _SOURCE)]
        self._sections = _values([*plain, *full, *small, *sources, {"protocols": [*_options()]}])
        for keys in self._sections.values():
            for key, values in keys.items():
                self._known.setdefault(key, []).extend(values)
        for tree in (*small, *plain, *full):
            self._trees[written(tree).encode()] = tree
        trees = (*small * _OFTEN, *full)
        return [Input("text", text.encode()) for text in (*texts, *map(written, trees))]

    def mutated(self, source: random.Random, known: Sequence[Input]) -> Input:
        """Other values in its tree, or other lines, characters or bytes."""
        content = source.choice(known).content
        mutation = Mutation(source, self._known)
        kind, tree = source.random(), self._tree(content)
        if kind < 0.4 and isinstance(tree, dict):
            text = written(self._reset(source, mutation, copy.deepcopy(tree)), source)
        elif kind < 0.7 and tree is not None:
            text = written(mutation.plain(tree), source)
        elif kind < 0.8:
            return Input("bytes", mutation.raw(content))
        else:
            text = _edited(source, mutation, content.decode(errors="replace"))
        if source.random() < 0.1:
            key, value = source.choice(list(self._known)), mutation.leaf()
            where = source.choice(("data", "parties", "privacy", "trials", "engine", "protocols.0"))
            setting = mutation.text(f"{where}.{key}={value}").replace("\n", " ")
            text = f"{_SETTING}{setting}\n{text}"
        return Input("text", text.encode(errors="surrogatepass"))

    def _reset(self, source: random.Random, mutation: Mutation, tree: dict[str, Any]) -> dict[str, Any]:
        """Values of some keys as they are elsewhere, or numbers nearby; several of them make a sweep."""
        for _ in range(source.choice((1, 1, 2, 3))):
            path, section = source.choice([*_sections(tree)])
            known = self._sections.get(path)
            if not known:
                continue
            key = source.choice(list(known))
            few = [copy.deepcopy(source.choice(known[key])) for _ in range(source.choice((1, 1, 1, 2, 3)))]
            values = [mutation.nearby(one) if source.random() < 0.4 else one for one in few]
            section[key] = values if len(values) > 1 else values[0]
        return tree

    def _tree(self, content: bytes) -> Any:
        if content not in self._trees:
            try:
                self._trees[content] = parse(content.decode(), "known")[0]
            except Exception:
                self._trees[content] = None  # a text that is no tree is changed as a text
        return self._trees[content]

    def attempt(self, given: Input) -> str:
        """Check it, and plan its worlds where they are few and their data is small."""
        file = self.folder / "mutated.yaml"
        file.write_bytes(given.content)
        lines = given.content.decode(errors="replace").splitlines()
        settings = [line.removeprefix(_SETTING) for line in lines if line.startswith(_SETTING)]
        validate(str(file), settings, as_json=True)
        scenario = resolve(file, settings)
        kinds = " ".join(sorted({entry.kind for entry in scenario.protocols}))
        return f"{kinds}: {_planned(scenario)}"

    @classmethod
    def suffix(cls, given: Input) -> str:
        """Scenario files."""
        return ".yaml"


def _planned(scenario: Scenario) -> str:
    """How far the plan of a scenario goes: nobody is asked, and nothing is trained."""
    sources = scenario.data.source if isinstance(scenario.data.source, tuple) else (scenario.data.source,)
    if not {Path(source).name for source in sources} <= {*_SMALL}:
        return "checked"
    found = preview(scenario, None)
    if max(found["worlds"], found["releases"]) > _PLANNED:
        return "previewed"
    first = worlds(scenario, None)[0]
    plan = first.plan(Path("nowhere"), first.split.cut.parties)
    inquiry = Inquiry()
    variants = Variants(World(plan, Views(plan)), inquiry)
    variants.outlooks()
    return f"planned {' '.join(sorted({question.kind for question, _ in inquiry.questions()}))}"


def _edited(source: random.Random, mutation: Mutation, text: str) -> str:
    """A text with other lines or characters."""
    lines = text.splitlines(keepends=True) or ["\n"]
    at, other = source.randrange(len(lines)), source.randrange(len(lines))
    match source.randrange(12):
        case 0:
            lines.insert(at, lines[other])
        case 1:
            del lines[at : at + source.choice((1, 2, 5))]
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case 3:
            lines[at] = source.choice(("  ", " ", "\t", "- ", "-", "? ", ": ")) + lines[at]
        case 4:
            lines[at] = lines[at].lstrip()
        case 5 | 6:
            indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
            lines.insert(at, f"{indent}{source.choice(_ODD_LINES)}\n")
        case 7:
            key, colon, value = lines[at].partition(":")
            lines[at] = f"{key}{colon} {source.choice(('&a', '*a', '!!str', '!!int', '!a', '|', '>', '@', '`'))}{value}"
        case 8 if source.random() < 0.1:
            lines.insert(at, source.choice((deep(source), "a: " + deep(source), _BOMB)))
        case 9 if source.random() < 0.02:
            lines *= source.choice((3, 100, 1000))
        case _:
            return mutation.text(text)
    return "".join(lines)


def _small(kind: str) -> dict[str, Any]:
    """A scenario of one protocol, on the small file where its labels suit and generated rows where they do not."""
    found: dict[str, Any] = {
        "data": {"source": _SOURCE, "label": "grade"},
        "parties": {"count": 4},
        "protocols": [{"kind": kind, **_FITTING.get(kind, {})}],
        "privacy": {"epsilon": 1, "delta": 1e-3},
        "trials": {"splits": 1, "noise": 1},
    }
    if kind in BASELINES:
        found["protocols"] = [{"kind": "soft_vote"}, *found["protocols"]]
        return found
    requires = protocol(kind).requires
    if requires.labels == "real":
        found["data"] |= {"label": "income", "range": [0, 10]}
    if requires.two_classes:
        found["data"]["positive"] = ["b"]
    if requires.bags:
        found["parties"]["bags"] = 2
    return found


def _further() -> Iterator[dict[str, Any]]:
    """Small scenarios with sections that others leave out, and without those that may be left out."""
    default = _small("soft_vote")
    yield {key: default[key] for key in ("data", "parties", "privacy")}
    attacked = {"hostile": {"fraction": 0.2, "kind": "random"}, "dropout": 0.1}
    dealt = {"count": 6, "partition": {"dirichlet": 0.2}}
    yield {
        **default,
        "parties": dealt | attacked,
        "privacy": {"epsilon": [1, 2], "budget": {"epsilon": 5, "delta": 0.1}},
    }
    ratios = _small("class_ratio")
    persons = {"person": "who", "rows_per_person": 2, "targets": {"rows": 4, "shares": [0.2, 0.8], "vary": "a"}}
    bags = {"count": 1, "rows": 32, "bags": {"by": "place"}}
    yield {**ratios, "data": ratios["data"] | persons, "parties": bags}
    for servers in ("one", "one_semi_honest", "two"):
        yield {
            **_small("mean_operator"),
            "servers": servers,
            "protocols": [{"kind": "mean_operator", "trust": "secure"}],
        }
    trained = {"solver": "adam", "epochs": 2, "learning_rate": 0.1, "batch_rows": 8}
    yield {**_small("weighted_lba"), "protocols": [{"kind": "weighted_lba", "size": 4, **trained}]}
    yield {**default, "parties": {"partition": {"by": "place"}}, "engine": {"kind": "ray", "workers": 2}}


def _csv() -> str:
    random_rows = np.random.default_rng(0)
    lines = ["height,weight,place,who,grade,income"]
    for row in range(ROWS):
        height, weight, income = random_rows.normal(170, 9), random_rows.normal(70, 9), random_rows.uniform(0, 10)
        lines.append(f"{height:.1f},{weight:.1f},{'NSEW'[row % 4]},p{row // 2},{'abc'[row % 3]},{income:.2f}")
    return "\n".join(lines) + "\n"


def _options() -> Iterator[dict[str, Any]]:
    """Every protocol with every word that one of its options may be, and its defaults."""
    for name in protocol_names():
        found = protocol(name)
        hints = typing.get_type_hints(found)
        for option in dataclasses.fields(found):
            words = [word for arm in (hints[option.name], *typing.get_args(hints[option.name])) for word in _words(arm)]
            for word in words:
                yield {"kind": name, option.name: word}
            if option.default is not dataclasses.MISSING:
                yield {"kind": name, option.name: option.default}


def _words(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) is typing.Literal else ()


def _sections(tree: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every mapping of a tree, with the keys that lead to it; a protocol's options with its kind."""
    if isinstance(tree, dict):
        kind = f" {tree.get('kind')}" if path.endswith("protocols") else ""
        yield path + kind, tree
        for key, value in tree.items():
            yield from _sections(value, f"{path} {key}".strip())
    for item in tree if isinstance(tree, list) else ():
        yield from _sections(item, path)


def _values(trees: Sequence[Any]) -> dict[str, dict[str, list[Any]]]:
    """All that the keys of every section hold in any of the trees, by section and key."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for tree in trees:
        for path, section in _sections(tree):
            for key, value in section.items():
                found.setdefault(path, {}).setdefault(key, {})[repr(value)] = value
    return {
        path: {key: list(values.values()) for key, values in sorted(keys.items())}
        for path, keys in sorted(found.items())
    }
