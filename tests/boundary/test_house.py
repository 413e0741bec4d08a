"""Imports lead one way at every level, and what only one protocol uses lies under its name."""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

import pytest

from benchmarks import house
from benchmarks.structure import (
    PACKAGES,
    Graph,
    Module,
    arrows,
    circles,
    circles_of_folders,
    modules_in,
    reached_from,
    returns,
)

ROOT = Path(__file__).resolve().parents[2]
PROTOCOLS = PurePosixPath("aggregator/protocols")

# Rooms of the common ground that stand for themselves: what they offer is used from outside, or by the rim.
OPEN_ROOMS = ("federation/contract/", "federation/mechanisms/", "federation/engines/", "federation/queries/")


@pytest.fixture(scope="module")
def modules() -> Sequence[Module]:
    """All of the four packages."""
    return modules_in(ROOT, PACKAGES)


@pytest.fixture(scope="module", name="graph")
def all_arrows(modules: Sequence[Module]) -> Graph:
    """What they import."""
    return arrows(modules, for_types=True)


def upward(graph: Graph) -> list[str]:
    """Arrows to an earlier layer, or out to a module of a folder around the own one."""
    return [
        f"{source} -> {target}" for source, targets in graph.items() for target in targets if returns(source, target)
    ]


def protocol_of(path: str) -> str | None:
    """Whose room a module lies in."""
    inside = PurePosixPath(path)
    if PROTOCOLS not in inside.parents:
        return None
    return inside.relative_to(PROTOCOLS).parts[0].removesuffix(".py")


def visits(graph: Graph) -> list[str]:
    """Arrows into a protocol's room from outside of it."""
    return [
        f"{source} -> {target}"
        for source, targets in graph.items()
        for target in targets
        if protocol_of(target) not in (None, "__init__", protocol_of(source))
    ]


def one_sided(graph: Graph) -> list[str]:
    """Modules of the common ground that only one side reaches, or none."""
    reached: dict[str, set[str]] = {}
    for side in ("parties", "aggregator"):
        own = [source for source in graph if source.startswith(f"{side}/")]
        reached[side] = set().union(*(reached_from(graph, source) for source in own))
    common = reached["parties"] & reached["aggregator"]
    return [
        path
        for path in graph
        if path.startswith("federation/") and not path.startswith(OPEN_ROOMS) and not path.endswith("__init__.py")
        if path not in common
    ]


def test_no_circle_of_modules(graph: Graph) -> None:
    assert circles(graph) == []


def test_no_circle_of_folders_at_any_level(graph: Graph) -> None:
    assert circles_of_folders(graph) == []


def test_no_arrow_leads_up(graph: Graph) -> None:
    assert upward(graph) == []


def test_what_only_one_protocol_uses_lies_under_its_name_and_nobody_else_looks_in(graph: Graph) -> None:
    assert visits(graph) == []


def test_what_only_one_side_uses_lies_with_that_side(graph: Graph) -> None:
    assert one_sided(graph) == []


A, B = "aggregator/protocols/one.py", "aggregator/protocols/two/two.py"


@pytest.mark.parametrize(
    ("graph", "found"),
    [
        ({"a/x.py": ("a/y.py",), "a/y.py": ("a/x.py",)}, circles),
        ({"a/b/x.py": ("a/c/y.py",), "a/c/y.py": (), "a/c/z.py": ("a/b/x.py",)}, circles_of_folders),
        ({"federation/a/x.py": ("federation/y.py",), "federation/y.py": ()}, upward),
        ({"federation/a/x.py": ("aggregator/b/y.py",), "aggregator/b/y.py": ()}, upward),
        ({A: (B,), B: ()}, visits),
        ({B: (A,), A: ()}, visits),
        ({"scenarios/runs/run.py": (B,), B: ()}, visits),
        ({"federation/numerics/x.py": (), "parties/a/y.py": ("federation/numerics/x.py",)}, one_sided),
    ],
)
def test_each_of_them_would_be_found(graph: Mapping[str, tuple[str, ...]], found) -> None:
    assert found(dict(graph)) != []


def test_the_drawn_house_is_the_one_that_stands(graph: Graph) -> None:
    drawn = (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8")
    assert house.described(house.rooms(graph)) in drawn, "run: python -m benchmarks.house docs/architecture.svg"
