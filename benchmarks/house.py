"""Draws the rooms of the four packages and their imports as they are: python -m benchmarks.house docs/architecture.svg

A room is a direct sub folder of a package. Within a package a room stands above all rooms that it imports, and an arrow
leads to each of these that no other arrow leads to in several steps. Between packages there is one arrow, whatever
number of imports it stands for. The file's description lists all arrows, so that a test can tell when it is old.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path

import matplotlib
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from benchmarks.structure import PACKAGES, Graph, arrows, modules_in, reached_from

Rooms = Mapping[str, frozenset[str]]  # by "package/room", those that it imports

PLACES = {"federation": (0.0, 0.0), "parties": (0.0, 7.6), "aggregator": (5.6, 7.6), "scenarios": (0.0, 15.2)}
SIZES = {"federation": (14.0, 6.6), "parties": (5.0, 6.6), "aggregator": (8.4, 6.6), "scenarios": (14.0, 6.6)}
COLOURS = {"federation": "#e8eef7", "parties": "#fbe9e0", "aggregator": "#e6f3e6", "scenarios": "#f1eef6"}
WHAT = {
    "federation": "common ground",
    "parties": "the private side",
    "aggregator": "the trusted side",
    "scenarios": "the rim",
}


def rooms(graph: Graph) -> Rooms:
    """Which room imports which, of all packages; modules that lie directly in a package are left out."""
    found: dict[str, set[str]] = {}
    for source, targets in graph.items():
        if (one := _room(source)) is not None:
            others = {other for target in targets if (other := _room(target)) not in (None, one)}
            found.setdefault(one, set()).update(others)
    return {room: frozenset(found[room]) for room in sorted(found)}


def _room(path: str) -> str | None:
    parts = path.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else None


def described(found: Rooms) -> str:
    """All arrows, one room a line."""
    return "; ".join(f"{room}: {', '.join(sorted(targets)) or 'none'}" for room, targets in found.items())


def heights(found: Rooms, package: str) -> dict[str, int]:
    """How many rooms of the package lie below each of its rooms on the longest way down.

    Raises `ValueError` for a circle.
    """
    own = {
        room: {other for other in targets if other.startswith(f"{package}/")}
        for room, targets in found.items()
        if room.startswith(f"{package}/")
    }
    placed: dict[str, int] = {}
    while len(placed) < len(own):
        ready = [room for room in own if room not in placed and own[room] <= placed.keys()]
        if not ready:
            raise ValueError(f"rooms of {package} import each other in a circle: {sorted(own.keys() - placed.keys())}")
        placed |= {room: 1 + max((placed[other] for other in own[room]), default=-1) for room in ready}
    return placed


def direct(room: str, found: Rooms, package: str) -> Iterable[str]:
    """The rooms of the package that it imports and reaches in no other way."""
    own = sorted(other for other in found[room] if other.startswith(f"{package}/"))
    return [one for one in own if not any(one in reached_from(found, other) for other in own if other != one)]


def draw(found: Rooms, path: Path) -> None:
    """Write the figure."""
    matplotlib.rcParams.update({"svg.hashsalt": "house", "svg.fonttype": "none", "font.size": 8})
    figure, axes = pyplot.subplots(figsize=(9.2, 13.2))
    axes.set(xlim=(-0.3, 14.3), ylim=(-0.3, 22.1))
    axes.axis("off")
    for package in PACKAGES:
        _draw_package(axes, package, found)
    for start, end in (((2.5, 7.6), (2.5, 6.6)), ((9.8, 7.6), (9.8, 6.6)), ((2.5, 15.2), (2.5, 14.2)),
                       ((9.8, 15.2), (9.8, 14.2)), ((5.3, 15.2), (5.3, 6.6))):  # fmt: skip
        axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "lw": 2.0, "color": "#444444"})
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None, "Description": described(found)})
    pyplot.close(figure)


def _draw_package(axes: Axes, package: str, found: Rooms) -> None:
    (left, bottom), (width, height) = PLACES[package], SIZES[package]
    axes.add_patch(
        FancyBboxPatch((left, bottom), width, height, boxstyle="round,pad=0.02,rounding_size=0.2",
                       facecolor=COLOURS[package], edgecolor="#888888")
    )  # fmt: skip
    axes.text(left + 0.15, bottom + height - 0.15, f"{package}: {WHAT[package]}", va="top", weight="bold", fontsize=10)
    high = heights(found, package)
    levels = max(high.values()) + 1
    places = {}
    for level in range(levels):
        here = [room for room, at in high.items() if at == level]
        for number, room in enumerate(here):
            across = left + width * (number + 1 + 0.3 * (level % 2)) / (len(here) + 1.3)
            places[room] = (across, bottom + 0.5 + (height - 1.3) * level / max(1, levels - 1))
    box = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": "#666666"}
    drawn = {
        room: axes.text(*place, room.split("/")[1], ha="center", va="center", bbox=box, zorder=3).get_bbox_patch()
        for room, place in places.items()
    }
    axes.figure.canvas.draw()  # only now are the boxes as large as their texts
    for room, place in places.items():
        for other in direct(room, found, package):
            ends = {"arrowstyle": "-|>", "color": "#777777", "patchA": drawn[room], "patchB": drawn[other]}
            axes.annotate("", places[other], place, arrowprops={**ends, "shrinkA": 1, "shrinkB": 1})


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    draw(rooms(arrows(modules_in(Path.cwd(), PACKAGES), for_types=True)), parser.parse_args().file)


if __name__ == "__main__":
    main()
