"""How the pages become a site: python -m sphinx -W -b html docs docs/_build/html

Formulas are written to the pages as MathML, which browsers draw by themselves: no script, and nothing from elsewhere.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the product and its benchmarks, as they are here

import federation
from benchmarks.documentation.docstrings import marked_up

project = "multiparty-federation"
author = "the authors of multiparty-federation"
version = release = federation.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
smartquotes = False  # two dashes begin an option
suppress_warnings = ["misc.highlighting_failure"]  # shown lines of a terminal are no language

autodoc_default_options = {"members": True, "imported-members": True, "member-order": "alphabetical"}
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False

html_theme = "pydata_sphinx_theme"
html_title = project
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": []}

_LOGGER = logging.getLogger(__name__)


def _formula(writer: Any, node: nodes.math) -> None:
    writer.body.append(_mathml(node, alone=False))
    raise nodes.SkipNode


def _formula_alone(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math">{_mathml(node, alone=True)}</div>')
    raise nodes.SkipNode


def _mathml(node: nodes.Element, alone: bool) -> str:
    try:
        return tex2mathml(node.astext(), as_block=alone)
    except MathError as error:
        _LOGGER.warning("formula: %s", error, location=node)
        return node.astext()


def _docstring(app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    lines[:] = marked_up(lines)


def setup(app: Any) -> None:
    """Register the formulas' renderer and the reader of docstrings, which comes before napoleon's."""
    app.add_html_math_renderer("mathml", (_formula, None), (_formula_alone, None))
    app.connect("autodoc-process-docstring", _docstring, priority=400)
