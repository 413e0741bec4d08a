"""A figure for a paper: no title, a size in inches, fonts embedded, curves that a black-and-white print tells apart."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from federation.contract.errors import InputError, writing
from scenarios.reports.axes import draw_panel, save, scale_of, styled
from scenarios.reports.curves import Curve, Plot
from scenarios.reports.summary import NON_PRIVATE, broken

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D

SIZES = {"column": 3.25, "page": 6.75}  # inches: the narrowest column and page of the usual two-column classes
_HEIGHT = 2.0  # inches of axes with their labels where only the width is given
_LEAST, _MOST = 1.5, 30.0  # inches of a side
_LETTER = 0.062  # inches of a letter in the legend
_STYLE = {
    "font.size": 8.0,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "axes.linewidth": 0.6,
    "pdf.fonttype": 42,  # TrueType, embedded; publishers refuse matplotlib's own Type 3
}
_DOTS = 600  # per inch, of a PNG: what journals ask of line drawings


def inches(size: str) -> tuple[float, float | None]:
    """Width and height that `--size` means, in inches; no height where that follows from the legend.

    Raises `InputError` for anything but column, page and WxH.

    Examples:
        >>> inches("column"), inches("5x2.5")
        ((3.25, None), (5.0, 2.5))
    """
    if size in SIZES:
        return SIZES[size], None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)x(\d+(?:\.\d+)?)", size)
    sides = tuple(map(float, found.groups())) if found else ()
    if not sides or not all(_LEAST <= side <= _MOST for side in sides):
        raise InputError(
            f"--size must be {', '.join(SIZES)} or WIDTHxHEIGHT in inches from {_LEAST:g} to {_MOST:g}, such as "
            f"3.5x2.2; got '{size}'"
        )
    return sides[0], sides[1]


def write(
    plot: Plot, stem: Path, formats: Sequence[str], size: str = "column", labels: Mapping[str, str] | None = None
) -> list[Path]:
    """Write the only panel of the plot as STEM.FORMAT for each of `formats` (pdf, svg, png); the paths written.

    `labels` are other names by those of the curves; what protects nobody says so behind any name. Equal plots give
    equal files. Raises `InputError` for a size without room, and where nothing can be written.
    """
    import matplotlib

    with styled():
        matplotlib.rcParams.update(_STYLE)
        figure = drawn(plot, *inches(size), labels or {})
        written = []
        for suffix in formats:
            with writing(f"{stem}.{suffix}", "name another --out"):
                written += save(figure, stem, [suffix], _DOTS)
        return written


def drawn(plot: Plot, width: float, height: float | None, labels: Mapping[str, str]) -> Figure:
    """The figure, in inches; without a `height` it has room for its legend. Raises `InputError` where there is none."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(width, height or _HEIGHT), layout="constrained")
    FigureCanvasAgg(figure)
    [panel] = plot.panels
    draw_panel(figure.add_subplot(), panel, plot, scale_of(plot), width)
    names = ["\n".join(broken(_named(curve, labels), int((width - 0.6) / _LETTER))) for curve in panel.curves]
    handles = [Line2D([], [], label=name, **curve.look.line) for name, curve in zip(names, panel.curves, strict=True)]
    tall = _legend(figure, handles).get_window_extent().height / figure.dpi
    if height is None:
        figure.set_figheight(_HEIGHT + tall)
    elif height - tall < _HEIGHT / 2:
        raise InputError(
            f"--size {width:g}x{height:g} leaves no room beside a legend of {tall:.1f} inches; make it "
            f"{math.ceil(10 * (tall + _HEIGHT / 2)) / 10:g} inches tall, or show fewer curves with --only"
        )
    return figure


def _named(curve: Curve, labels: Mapping[str, str]) -> str:
    """The name in the legend, which tells of every variant that protects nobody."""
    name = labels.get(curve.label, curve.label)
    exposed = curve.look.unprotected and NON_PRIVATE.lower() not in name.lower()
    return f"{name} ({NON_PRIVATE.lower()})" if exposed else name


def _legend(figure: Figure, handles: Sequence[Line2D]) -> Legend:
    """The legend above the axes, in the fewest lines that are not wider than the figure."""
    for lines in range(1, len(handles) + 1):
        legend = figure.legend(
            handles=list(handles),
            loc="outside upper center",
            ncols=math.ceil(len(handles) / lines),
            handlelength=2.6,
            columnspacing=1.2,
            borderaxespad=0.2,
        )
        if lines == len(handles) or legend.get_window_extent().width <= figure.bbox.width:
            break
        legend.remove()
    return legend
