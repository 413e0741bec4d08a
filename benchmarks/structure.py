"""The structure of this checkout in numbers: python -m benchmarks.structure [--against REV] [--json]

Reads the files of the folder it is run in, and with `--against` those of a revision too, which are then `before`; runs
nothing of them. Packages are federation, parties, aggregator and scenarios; every file of Python in them is a module.

Code lines are not blank, comment, docstring or import statement. A room is a package's own modules, or all of those in
and below one of its direct sub folders. Lengths of files count every line.

An arrow leads from a module to one it imports anywhere in its text, without the parent packages that Python imports on
the way, or what entry points load; one under `if TYPE_CHECKING:` is only for types. A circle is a largest set of
modules that all reach each other along arrows. A circle of folders is the same among the sub folders and modules of one
folder, where arrows of all that lies in a sub folder are its own.

A file names a protocol where its entry point's name or its class's stands as a whole word, in code or in prose; names
such as `private_labels` have other uses, which count too.

The walk follows arrows that are not only for types from scenarios/cli.py, depth first in the order of the text, and
goes to every module once. Its `rooms` are the folders of the modules it reaches, at any depth. Its `stays` are the
modules whose folder is not that of the module which first led there. Its `returns` are arrows between modules it
reaches that lead to a package of an earlier layer (scenarios; then aggregator and parties; then federation), or within
a package from a folder to a module directly in a folder around it. Returns are told for all modules as well.

Probing is `getattr` or `hasattr` with a literal name, and `isinstance` with a class whose name ends in Question.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import statistics
import subprocess
import tarfile
import tempfile
import textwrap
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

LAYERS = {"scenarios": 0, "aggregator": 1, "parties": 1, "federation": 2}
PACKAGES = ("federation", "parties", "aggregator", "scenarios")
TOPS = (*PACKAGES, "tests", "benchmarks")
FIRST = "scenarios/cli.py"
_LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}

_FOR_TYPES = ("TYPE_CHECKING", "typing.TYPE_CHECKING")
_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Graph = dict[str, tuple[str, ...]]  # by node, those that its arrows lead to, in the order of the text
Circle = tuple[str, ...]


@dataclass(frozen=True)
class Module:
    """A file of Python: its path below the checkout, and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax."""
        return ast.parse(self.text, filename=self.path)

    @property
    def top(self) -> str:
        """The top folder that it lies in."""
        return PurePosixPath(self.path).parts[0]

    @property
    def room(self) -> str:
        """Its package, or the direct sub folder of it that it lies in or below."""
        return "/".join(PurePosixPath(self.path).parent.parts[:2])

    @property
    def name(self) -> str:
        """As imports write it."""
        return ".".join(PurePosixPath(self.path).with_suffix("").parts).removesuffix(".__init__")


@dataclass(frozen=True)
class Sizes:
    """Of the files below a top folder: how many, and their lengths in lines of any kind."""

    modules: int
    median: float
    longest: int


@dataclass(frozen=True)
class Named:
    """How many files name a protocol, and how many folders these lie in."""

    files: int
    folders: int


@dataclass(frozen=True)
class Walk:
    """What a walk along arrows meets, as defined above; `returns_of_all` are those of modules it does not reach too."""

    modules: int
    rooms: int
    stays: int
    returns: int
    returns_of_all: int


@dataclass(frozen=True)
class Structure:
    """What is measured of one tree."""

    code_lines: dict[str, int]
    sizes: dict[str, Sizes]
    circles: dict[str, list[Circle]]
    protocols: dict[str, Named]
    walk: Walk
    names_probed: dict[str, int]
    questions_probed: dict[str, int]


def modules_in(root: Path, tops: Iterable[str]) -> list[Module]:
    """The files of Python below these top folders, by path."""
    files = sorted(file for top in tops for file in (root / top).rglob("*.py"))
    return [Module(file.relative_to(root).as_posix(), file.read_text(encoding="utf-8")) for file in files]


def code_lines(module: Module) -> int:
    """How many lines are neither blank nor only comment, docstring or import."""
    found = set[int]()
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type not in _LAYOUT:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(module.tree):
        for dropped in _without_code(node):
            found.difference_update(range(dropped.lineno, (dropped.end_lineno or dropped.lineno) + 1))
    lines = module.text.split("\n")
    return sum(bool(lines[number - 1].strip()) for number in found)


def _without_code(node: ast.AST) -> Iterator[ast.stmt]:
    """The node itself where it is an import, and the docstring where it has one."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node
    elif isinstance(node, _Documented) and ast.get_docstring(node, clean=False) is not None:
        yield node.body[0]


def lines_by_room(modules: Iterable[Module]) -> dict[str, int]:
    """Code lines of every room, of every top folder, and of all packages."""
    found = Counter[str]()
    for module in modules:
        inside = (module.room, "all packages") if module.top in PACKAGES else ()
        found.update(dict.fromkeys((f"all of {module.top}", *inside), code_lines(module)))
    return dict(found)


def sizes(modules: Iterable[Module]) -> dict[str, Sizes]:
    """Of the files below every top folder that has any."""
    lengths: dict[str, list[int]] = {}
    for module in modules:
        lengths.setdefault(module.top, []).append(len(module.text.splitlines()))
    return {top: Sizes(len(each), statistics.median(each), max(each)) for top, each in lengths.items()}


def arrows(modules: Sequence[Module], for_types: bool) -> Graph:
    """The modules that each of them imports, itself not among them; with those only for types where asked."""
    paths = {module.name: module.path for module in modules}
    graph: Graph = {}
    for module in modules:
        names = (name for node in _imports(module.tree, for_types) for name in _imported(node, module, paths))
        targets = dict.fromkeys(paths[name] for name in names)
        graph[module.path] = tuple(target for target in targets if target != module.path)
    return graph


def _imports(node: ast.AST, for_types: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """The import statements below a node, in the order of the text."""
    skipped: list[ast.stmt] = []
    if not for_types and isinstance(node, ast.If) and ast.unparse(node.test) in _FOR_TYPES:
        skipped = node.body
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom) and child not in skipped:
            yield child
        elif child not in skipped:
            yield from _imports(child, for_types)


def _imported(node: ast.Import | ast.ImportFrom, module: Module, known: Mapping[str, str]) -> Iterator[str]:
    """Names of the known modules that a statement imports or imports from."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in known)
        return
    around = PurePosixPath(module.path).parts[: -node.level] if node.level else ()
    source = ".".join([*around, *([node.module] if node.module else [])])
    for alias in node.names:
        inner = f"{source}.{alias.name}"
        if inner in known or source in known:
            yield inner if inner in known else source


def circles(graph: Mapping[str, Iterable[str]]) -> list[Circle]:
    """The largest sets of two or more nodes that all reach each other."""
    reached = {node: reached_from(graph, node) for node in graph}
    found = {tuple(sorted(other for other in reached[node] if node in reached[other])) for node in graph}
    return sorted(circle for circle in found if len(circle) > 1)


def reached_from(graph: Mapping[str, Iterable[str]], first: str) -> set[str]:
    """What arrows lead to from a node, in any number of steps; the node itself only if they lead back."""
    reached, waiting = set[str](), list(graph[first])
    while waiting:
        node = waiting.pop()
        if node not in reached:
            reached.add(node)
            waiting += graph[node]
    return reached


def circles_of_folders(graph: Graph) -> list[Circle]:
    """Those among what lies directly in one folder, for every folder and the checkout itself."""
    siblings: dict[PurePosixPath, dict[str, set[str]]] = {}
    for source in graph:
        node = PurePosixPath(source)
        for child in (node, *node.parents[:-1]):
            siblings.setdefault(child.parent, {}).setdefault(str(child), set())
    for source, targets in graph.items():
        for target in targets:
            folder, one, other = _parting(source, target)
            siblings[folder][one].add(other)
    return [circle for folder in sorted(siblings) for circle in circles(siblings[folder])]


def _parting(source: str, target: str) -> tuple[PurePosixPath, str, str]:
    """The innermost folder that holds both paths, and the two that lie directly in it and are or hold one each."""
    one, other = PurePosixPath(source).parts, PurePosixPath(target).parts
    depth = next(place for place, (left, right) in enumerate(zip(one, other, strict=False)) if left != right)
    return PurePosixPath(*one[:depth]), "/".join(one[: depth + 1]), "/".join(other[: depth + 1])


def protocols_of(root: Path) -> dict[str, str]:
    """Names of the classes of all protocols, by the names of their entry points."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
    entries = project.get("entry-points", {}).get("federation.protocols", {})
    return {name: re.split(r"[:.]", target)[-1] for name, target in entries.items()}


def named(modules: Iterable[Module], *words: str) -> Named:
    """How many of the files have one of the words in their text."""
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, words))})\b")
    files = [PurePosixPath(module.path) for module in modules if pattern.search(module.text)]
    return Named(len(files), len({file.parent for file in files}))


def walk(graph: Graph, first: str = FIRST) -> Walk:
    """What a walk from one module meets; nothing where there is no such module."""
    visited, stays = set[str](), 0
    waiting = [(first, first)] if first in graph else []
    while waiting:
        node, importer = waiting.pop()
        if node in visited:
            continue
        visited.add(node)
        stays += _folder(node) != _folder(importer)
        waiting += [(target, node) for target in reversed(graph[node])]
    back = [source for source, targets in graph.items() for target in targets if returns(source, target)]
    rooms = {_folder(node) for node in visited}
    return Walk(len(visited), len(rooms), stays, sum(source in visited for source in back), len(back))


def returns(source: str, target: str) -> bool:
    """Whether an arrow leads to an earlier layer or out to a module of a folder around its own."""
    one, other = _folder(source), _folder(target)
    return LAYERS[other.parts[0]] < LAYERS[one.parts[0]] or other in one.parents


def _folder(path: str) -> PurePosixPath:
    return PurePosixPath(path).parent


def names_probed(module: Module) -> int:
    """How many calls ask an object for an attribute by a literal name."""
    calls = _calls(module, "getattr", "hasattr")
    return sum(isinstance(call.args[1], ast.Constant) and isinstance(call.args[1].value, str) for call in calls)


def questions_probed(module: Module) -> int:
    """How many calls ask whether an object is a question of some kind."""
    asked = [ast.unparse(call.args[1]) for call in _calls(module, "isinstance")]
    return sum(re.search(r"Question\b", classes) is not None for classes in asked)


def _calls(module: Module, *names: str) -> Iterator[ast.Call]:
    """Calls of functions of these names with two arguments or more."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in names and len(node.args) > 1:
            yield node


def measured(root: Path) -> Structure:
    """The structure of the tree at `root`."""
    everything = modules_in(root, TOPS)
    modules = [module for module in everything if module.top in PACKAGES]
    graph, with_types = arrows(modules, for_types=False), arrows(modules, for_types=True)
    return Structure(
        lines_by_room(everything),
        sizes(everything),
        {
            "modules": circles(graph),
            "modules, for types too": circles(with_types),
            "folders": circles_of_folders(graph),
            "folders, for types too": circles_of_folders(with_types),
        },
        {name: named(modules, name, kind) for name, kind in protocols_of(root).items()},
        walk(graph),
        {module.path: count for module in modules if (count := names_probed(module))},
        {module.path: count for module in modules if (count := questions_probed(module))},
    )


def measured_at(revision: str) -> Structure:
    """The structure of a revision; raises `CalledProcessError` where git knows none of that name."""
    packed = subprocess.run(["git", "archive", "--format=tar", revision], capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
        return measured(Path(folder))


def tables(structure: Structure) -> dict[str, dict[str, float]]:
    """All that is a number, by the title of its table and the label of its row."""
    lengths = {top: asdict(size) for top, size in structure.sizes.items()}
    mentions = {name: asdict(found) for name, found in structure.protocols.items()}
    found = structure.circles.items()
    names, questions = structure.names_probed, structure.questions_probed
    return {
        "code lines": {**structure.code_lines},
        "lengths of files": {f"{top}, {key}": number for top, size in lengths.items() for key, number in size.items()},
        "circles of imports": {
            **{f"circles of {kind}": len(each) for kind, each in found},
            **{f"members of those of {kind}": sum(map(len, each)) for kind, each in found},
        },
        "naming a protocol": {f"{name}, {key}": count for name, row in mentions.items() for key, count in row.items()},
        f"walk from {FIRST}": {key.replace("_", " "): count for key, count in asdict(structure.walk).items()},
        "getattr and hasattr with a literal name": {**names, "all files": sum(names.values())},
        "isinstance of a question": {**questions, "all files": sum(questions.values())},
    }


def show(sides: Mapping[str, Structure]) -> None:
    """Prints the tables, one column for every side and one for the difference, then the members of all circles."""
    found = {side: tables(structure) for side, structure in sides.items()}
    heads = [*sides, "difference"] if len(sides) > 1 else [""]
    for title in next(iter(found.values())):
        columns = [table[title] for table in found.values()]
        print(f"\n{title:56}{''.join(f'{head:>11}' for head in heads)}".rstrip(" "))
        labels = {label for column in columns for label in column}
        for label in sorted(labels, key=lambda label: (label.startswith("all "), label)):
            row = [column.get(label, 0) for column in columns]
            last = f"{row[1] - row[0]:+11g}" if len(row) > 1 else ""
            print(f"  {label:54}" + "".join(f"{number:11g}" for number in row) + last)
    for kind in next(iter(sides.values())).circles:
        _show_circles(kind, {side: structure.circles[kind] for side, structure in sides.items()})


def _show_circles(kind: str, sides: Mapping[str, Sequence[Circle]]) -> None:
    """Prints the members of every circle, and beside two sides which of them has it."""
    print(f"\ncircles of {kind}" + ("" if any(sides.values()) else ": none"))
    for circle in dict.fromkeys(circle for each in sides.values() for circle in each):
        holding = [side for side, each in sides.items() if circle in each]
        told = f" {'both' if len(holding) > 1 else holding[0]}," if len(sides) > 1 else ""
        text = f"{told} {len(circle)}: {', '.join(circle)}"
        print(textwrap.fill(text, 120, initial_indent=" ", subsequent_indent="    ", break_on_hyphens=False))


def main() -> None:
    """Prints the structure, as text or as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="REV", help="a revision to compare with")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    sides = {"after": measured(Path.cwd())}
    if chosen.against is not None:
        try:
            sides = {"before": measured_at(chosen.against), **sides}
        except subprocess.CalledProcessError as error:
            parser.error(error.stderr.decode().strip())
    if chosen.json:
        print(json.dumps({side: asdict(structure) for side, structure in sides.items()}, indent=2))
    else:
        show(sides)


if __name__ == "__main__":
    main()
