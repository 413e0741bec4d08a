"""Docstrings as the markup of a site."""

import re

import pytest

from benchmarks.documentation.docstrings import marked_up

core = pytest.importorskip("docutils.core", reason="the site needs pip install '.[docs]'")
nodes = pytest.importorskip("docutils.nodes")

TEXT = """Noise |b| of *any* law in R^D, see `NoiseBits`s and `first_`.

size: k, rows
    of a bag.
bags, rows: numbers.
1. One,
   two.
2. Three.

Examples:
    >>> 2 | 3
    3
"""


def read(text: str) -> nodes.document:
    return core.publish_doctree("\n".join(marked_up(text.splitlines())), settings_overrides={"report_level": 1})


def test_it_is_read_without_complaint_signs_are_themselves_and_terms_and_numbers_become_lists() -> None:
    found = read(TEXT)
    assert not list(found.findall(nodes.system_message))
    assert re.search(r"NoiseBitss.*first_", found[0].astext())
    assert [code.astext() for code in found.findall(nodes.literal)] == ["NoiseBits", "first_"]
    [terms] = found.findall(nodes.bullet_list)
    assert [item.astext() for item in terms] == ["size: k, rows of a bag.", "bags, rows: numbers."]
    [numbers] = found.findall(nodes.enumerated_list)
    assert len(numbers) == 2


def test_examples_and_sections_that_napoleon_reads_keep_their_form() -> None:
    assert "    >>> 2 | 3" in marked_up(TEXT.splitlines())
    lines = ["Raises:", "    InputError: for |x| > 1.", "", "Then text."]
    assert marked_up(lines) == ["Raises:", "    InputError: for \\|x\\| > 1.", "", "Then text."]
