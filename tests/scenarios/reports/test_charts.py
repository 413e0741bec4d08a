"""Figures of the page: complete SVG that takes the page's colours, whatever variants are called."""

import re
import xml.etree.ElementTree as ElementTree

import pytest
from support.figure_rows import ratio_rows, rows

from scenarios.reports.figures import chart, plots

HOSTILE = "--></svg><script>'\" white #ffffff"


def made(found, name="accuracy"):
    return chart(name, plots(found)[name])


def texts(svg):
    return [node.text for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("}text")]


def test_a_panel_names_its_curves_and_its_axes_in_text():
    found = made(rows())
    (drawing,) = found.drawings
    assert {"accuracy", "ε", "0.1", "1", "10"} <= set(texts(drawing.svg))
    labels = [label for _, label in found.legend]
    assert labels[0] == "soft_vote (default)"
    assert set(re.findall("<title>(.*?)</title>", drawing.svg)) == set(labels)
    assert 'aria-label="accuracy: soft_vote (default), soft_vote gaussian, ' in drawing.svg
    assert found.title == "Accuracy over ε"
    assert "bars: 95 % intervals of the mean (Student), with the splits as units" in found.caption


def test_colours_that_the_page_sets_are_left_to_it():
    svg = made(rows()).drawings[0].svg
    styles = " ".join(re.findall('style="([^"]*)"', svg))
    assert set(re.findall(r"#[0-9a-f]{6}", styles)) == {"#0072b2", "#e69f00", "#d55e00", "#56b4e9"}
    assert {"var(--ink)", "var(--paper)", "var(--line)", "var(--soft)", "var(--grey-1)"} <= set(
        re.findall(r"var\([^)]*\)", styles)
    )
    for swatch, _ in made(rows()).legend:
        ElementTree.fromstring(swatch)
        assert "#ffffff" not in swatch


def test_hostile_names_are_text():
    for epsilons in ((1.0,), (1.0, 10.0)):
        found = made([row | {"protocol": "v"} for row in rows(epsilons, ("v", HOSTILE), references=False)])
        for drawing in found.drawings:
            tree = ElementTree.fromstring(drawing.svg)
            names = {node.tag.rpartition("}")[2] for node in tree.iter()}
            assert names <= {"svg", "defs", "g", "path", "use", "text", "title", "clipPath", "rect"}
            assert "<!--" not in drawing.svg
            links = [value for node in tree.iter() for key, value in node.attrib.items() if key.endswith("href")]
            assert all(link.startswith("#") for link in links)
            if len(epsilons) == 1:
                assert any("<script>" in text for text in texts(drawing.svg))


def test_identifiers_differ_between_charts_and_pages():
    found = plots(rows(settings=[{"parties.count": "10"}, {"parties.count": "20"}]))["accuracy"]
    drawings = [drawing for page in "ab" for drawing in chart("accuracy", found, page).drawings]
    identifiers = [set(re.findall(' id="([^"]*)"', drawing.svg)) for drawing in drawings]
    assert len(identifiers) == 4
    assert all(identifiers)
    assert len(set.union(*identifiers)) == sum(map(len, identifiers))
    assert chart("accuracy", found) == chart("accuracy", found)


def test_groups_have_legends_of_their_own_and_settings_share_one():
    settings = made(rows(settings=[{"parties.count": "10"}, {"parties.count": "20"}]))
    assert [drawing.title for drawing in settings.drawings] == ["parties.count = 10", "parties.count = 20"]
    assert settings.legend
    assert not any(drawing.legend for drawing in settings.drawings)
    groups = made(rows(variants=[f"v{i}" for i in range(9)]), "accuracy-all")
    assert groups.title == "Accuracy over ε, all variants"
    assert not groups.legend
    assert all(2 < len(drawing.legend) <= 6 for drawing in groups.drawings)


@pytest.mark.parametrize("kept", ["party", "none"])
def test_only_what_has_no_guarantee_is_watermarked(kept):
    found = made([row | {"unit": kept} for row in rows()])
    assert ('class="watermark"' in found.drawings[0].svg) is (kept == "none")


def test_at_one_epsilon_rows_have_names_and_only_references_a_legend():
    found = made(ratio_rows(epsilons=(1.0,)), "l1")
    assert {"x (default)", "published_a (NON-PRIVATE)"} <= set(texts(found.drawings[0].svg))
    assert [label for _, label in found.legend] == ["off (NON-PRIVATE)", "pooled (NON-PRIVATE)"]
