"""Pages and figures of a reproduced paper, made from the stored values of its items.

A figure has one panel per setting, with the paper's points, ours as published, and our default.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from federation.contract.errors import writing
from scenarios.reports.axes import COLOURS, Axis, Curve, Look, Panel, Plot, figure, save, styled
from scenarios.reports.summary import Spread
from scenarios.reproductions.compare import Cell, cells, claim_lines, claims, lines, used
from scenarios.reproductions.paper import Item, Kept, Paper, Reason, read
from scenarios.runs.directory import replaced

_HOW = (
    "Brackets are 95 % intervals of the mean (Student), with the splits as units; behind ± stands what the paper "
    "prints. *Inside*: the paper's value lies in our interval as published. *Default less published*: how much larger "
    "our default is than ours as published, in pairs on the same splits, with the p-value of Wilcoxon's signed-rank "
    "test. *Why*: the reasons below the table, by their numbers. A claim of the text holds, or does not, where the "
    "interval of its difference is on one side of zero; that no difference is seen does not prove that there is none."
)


def write(paper: Paper, folder: Path) -> Path:
    """Write FOLDER/NAME.md and the figures FOLDER/NAME/ITEM.svg from what is kept there; the page's path.

    Raises `InputError` for kept files of another content, and where nothing can be written.
    """
    kept = {item.name: read(folder, paper, item) for item in paper.items}
    path = folder / f"{paper.name}.md"
    with writing(f"to {folder}", "name another --out"):
        for item in paper.items:
            if (found := kept[item.name]) is not None:
                draw(item, cells(paper, item, found), folder / paper.name / item.name)
        replaced(path, page(paper, kept, folder))
    return path


def page(paper: Paper, kept: Mapping[str, Kept | None], folder: Path) -> str:
    """The page in Markdown; figures are shown where they lie below the folder."""
    parts = [f"# {_escaped(paper.citation)}", _escaped(paper.about), _HOW]
    for item in paper.items:
        parts += _section(paper, item, kept.get(item.name), folder)
    return "\n\n".join(parts) + "\n"


def _section(paper: Paper, item: Item, kept: Kept | None, folder: Path) -> list[str]:
    head = [f"## {_escaped(item.title)} ({_escaped(item.place)})", *([_escaped(item.about)] if item.about else [])]
    if kept is None:
        return [*head, f"Not measured yet: `federation reproduce {paper.name} --only {item.name}`."]
    compared, tested = cells(paper, item, kept), claims(item, kept)
    reasons = used(compared, tested)
    found = [*head, _meanings(item), markdown(lines(item, compared, reasons))]
    figure = folder / paper.name / f"{item.name}.svg"
    if item.axis and figure.exists():
        found.append(f"![{_escaped(item.title)}]({paper.name}/{item.name}.svg)")
    found += [markdown(claim_lines(item, tested, reasons)), _listed(reasons), _made(paper, item, kept)]
    return list(filter(None, found))


def _meanings(item: Item) -> str:
    return "\n".join(f"- **{_escaped(one.name)}**: {_escaped(one.meaning)}" for one in item.series if one.meaning)


def _listed(reasons: Sequence[Reason]) -> str:
    if not reasons:
        return ""
    return "\n".join(
        ["Why ours differs:", "", *(f"{n}. *{one.kind}*: {_escaped(one.text)}" for n, one in enumerate(reasons, 1))]
    )


def _made(paper: Paper, item: Item, kept: Kept) -> str:
    """The command, and how much of what was measured."""
    record = kept.record
    counts = ", ".join(f"{setting} {count}" for setting, count in record.splits.items())
    few = ", a quick run" if record.quick else ""
    seeds = sorted(set(record.seeds.values()))
    seed = f", seed {', '.join(map(str, seeds))}" if seeds else ""
    said = [
        f"`{record.command}` (version {record.version}{seed}{few}){f'; splits: {_escaped(counts)}' if counts else ''}."
    ]
    said += [f"{_escaped(setting)}: {_escaped(text)}." for setting, text in record.data.items()]
    said += [f"{_escaped(setting)} was not measured: {_escaped(text)}." for setting, text in record.missing.items()]
    return f"{' '.join(said)} Values: [{item.name}.csv]({paper.name}/{item.name}.csv)."


def markdown(rows: Sequence[Mapping[str, str]]) -> str:
    """A table of records of the same keys; nothing where there are none.

    Examples:
        >>> print(markdown([{"a": "1"}, {"a": "2"}]))
        | a |
        |---|
        | 1 |
        | 2 |
    """
    if not rows:
        return ""
    return "\n".join([_row(rows[0]), f"|{'---|' * len(rows[0])}", *(_row(row.values()) for row in rows)])


def _row(texts: Iterable[str]) -> str:
    return f"| {' | '.join(map(_escaped, texts))} |"


def _escaped(text: str) -> str:
    """A text in Markdown; outside code, signs are themselves."""
    parts = text.replace("|", r"\|").split("`")
    return "`".join(part if i % 2 else re.sub(r"([*_<$\[\]{}])", r"\\\1", part) for i, part in enumerate(parts))


_DOTS = 150
_MARKERS = ("o", "s", "^", "D", "v", "P")
_STYLES = {"the paper": "none", "as published": "--", "default": "-"}


def draw(item: Item, compared: Sequence[Cell], stem: Path) -> list[Path]:
    """Write STEM.svg of an item with an axis of numbers; the paths written, none where there is nothing to draw."""
    cells = [cell for cell in compared if cell.ours or cell.default]
    places = sorted({float(cell.x) for cell in cells}) if item.axis else []
    if len(places) < 2:
        return []
    names = list(dict.fromkeys(cell.series for cell in cells))
    panels = [
        Panel(setting, tuple(_curves([cell for cell in cells if cell.setting == setting], names)))
        for setting in dict.fromkeys(cell.setting for cell in cells)
    ]
    plot = Plot(tuple(panels), Axis.of(item.axis, places), item.metric)
    with styled():
        return save(figure(plot, item.title), stem, ("svg",), _DOTS)


def _curves(cells: Sequence[Cell], names: Sequence[str]) -> list[Curve]:
    """For each series up to three: what is printed, and both of ours."""
    found = []
    for name in names:
        own = [cell for cell in cells if cell.series == name]
        known = {
            "the paper": {float(c.x): Spread.of({0: [c.paper.value]}) for c in own if c.paper is not None},
            "as published": {float(c.x): c.ours for c in own if c.ours is not None},
            "default": {float(c.x): c.default for c in own if c.default is not None},
        }
        number = names.index(name)
        found += [Curve(f"{name}, {whose}", _look(number, whose), points) for whose, points in known.items() if points]
    return found


def _look(number: int, whose: str) -> Look:
    colour = COLOURS[number % len(COLOURS)]
    line = {
        "color": colour,
        "linestyle": _STYLES[whose],
        "linewidth": 1.6 if whose == "default" else 1.2,
        "marker": "*" if whose == "the paper" else _MARKERS[number % len(_MARKERS)],
        "markersize": 9 if whose == "the paper" else 4,
        "markeredgewidth": 0.8,
        "markeredgecolor": colour,
        "markerfacecolor": "white" if whose == "as published" else colour,
    }
    return Look(line, 3.0)
