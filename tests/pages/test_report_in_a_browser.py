"""The page in a real browser: nothing is cut off, covered, faint or fetched, on a desk, on a phone, by day and night.

It takes the Chromium of this machine, as distributions install it, and downloads none.
"""

import shutil
from collections import Counter

import pytest
from support.finished_runs import maker

from scenarios.reports.report import write_report

CHROMIUM = shutil.which("chromium")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install '.[test]'")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the PATH: apt install chromium")

VALUES = {
    "soft_vote": (0.4, 0.7, 0.8),
    **{f"soft_vote-output-published-regularisation={10.0**-i:g}": (0.2, 0.1 * i, 0.15 * i) for i in range(1, 6)},
    **{f"soft_vote-gaussian-rounds={i}": (0.3, 0.05 * i, 0.08 * i) for i in range(6)},
    "a-name-of-somebody-s-own-that-takes-all-the-letters-it-can-get-for-nothing": (0.5, 0.6, 0.75),
    "majority_vote-off": (0.9, 0.9, 0.9),
}
FINDINGS = "useful", "no better", "cannot be told", None
PLACES = ({"data.source": "first"}, {"data.source": "second_with_a_longer_name"})

BOXES = """() => {
  const box = element => { const b = element.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; };
  const texts = [...document.querySelectorAll('svg.chart')].map(svg => [...svg.querySelectorAll('text')]
    .filter(text => !text.closest('.watermark')).map(text => [text.textContent, ...box(text)]));
  const places = 'section.run > *, figure > *, .panels > *, .legend > li, nav li, td, th';
  const blocks = [...document.querySelectorAll(places)].filter(element => element.getClientRects().length);
  const parents = [...new Set(blocks.map(block => block.parentElement))];
  return [texts, blocks.map(block => [block.tagName, parents.indexOf(block.parentElement), ...box(block)])];
}"""

WIDE = """() => [...document.querySelectorAll('html, body *')].filter(element => !element.closest('svg')
  && element.clientWidth && getComputedStyle(element).display !== 'inline'
  && element.scrollWidth > element.clientWidth + 1).map(e => e.tagName + ': ' + e.textContent.slice(0, 60))"""

FAINT = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = colour => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const linear = c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
  const light = rgb => [.2126, .7152, .0722].reduce((sum, part, i) => sum + part * linear(rgb[i] / 255), 0);
  const ground = element => { for (let e = element; e; e = e.parentElement) {
    const found = rgba(getComputedStyle(e).backgroundColor);
    if (found[3] === 255) return found; } return [255, 255, 255]; };
  const seen = [...document.querySelectorAll('body *')].filter(element => element.getClientRects().length
    && !element.closest('.watermark') && [...element.childNodes].some(n => n.nodeType === 3 && n.data.trim()));
  return [seen.length, seen.flatMap(element => {
    const style = getComputedStyle(element);
    const [a, b] = [light(rgba(element.closest('svg') ? style.fill : style.color)), light(ground(element))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    return ratio < 4.5 ? [[element.tagName, element.textContent.slice(0, 40), ratio]] : [];
  })];
}"""  # the contrast of WCAG 2.1, 1.4.3, which asks for 4.5 of text

LETTERS = """() => [...document.querySelectorAll('svg.chart text')].map(text => text.getBoundingClientRect())
  .map(box => Math.min(box.width, box.height)).filter(size => size)"""
SIZES = "[...document.querySelectorAll('td, th, li, p')].map(e => parseFloat(getComputedStyle(e).fontSize))"


def overlapping(boxes, by):
    """Pairs of boxes (name, left, top, right, bottom) that share more than `by` pixels in both directions."""
    return [
        (a[0], b[0])
        for at, a in enumerate(boxes)
        for b in boxes[:at]
        if min(a[3], b[3]) - max(a[1], b[1]) > by and min(a[4], b[4]) - max(a[2], b[2]) > by
    ]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    make = maker(tmp_path_factory.mktemp("runs"))
    told = {
        "non_private": True,
        "failures": {"it did not answer": 3},
        "sayings": [{"finding": finding, "sentence": f"it is {finding}"} for finding in FINDINGS],
        "defaults": [dict.fromkeys(("protocol", "default", "rule", "validated"), "words " * 9)],
        "failed_variants": [{"variant": "soft_vote", "world": "split 1", "cause": "no room"}],
    }
    directory = make(values=VALUES, settings=PLACES, **told)
    return write_report([directory], directory / "report.html")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        known = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])  # as root there is no sandbox
        yield known
        known.close()


@pytest.fixture(scope="module", params=[(1400, "light"), (390, "dark")], ids="{0[0]}-{0[1]}".format)
def page(browser, page_file, request):
    """The page from its file, without a network, all details open; with what the browser complained about."""
    width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    found = context.new_page()
    found.complaints, found.asked = [], []
    found.on("console", lambda message: found.complaints.append(message.text))
    found.on("pageerror", lambda error: found.complaints.append(str(error)))
    found.on("request", lambda request: found.asked.append(request.url))
    found.goto(page_file.as_uri())
    found.folded = found.evaluate("document.documentElement.scrollHeight")
    found.evaluate("document.querySelectorAll('details').forEach(element => { element.open = true; })")
    yield found
    context.close()


def test_nothing_is_fetched_and_nothing_complained_about(page, page_file):
    assert page.complaints == []
    assert page.asked == [page_file.as_uri()]


def test_nothing_is_wider_than_the_page(page):
    assert page.evaluate(WIDE) == []
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") == width
    ends = page.evaluate(
        "[...document.querySelectorAll('body *')].map(element => element.getBoundingClientRect().right)"
    )
    assert max(ends) <= width


def test_no_text_of_a_figure_and_no_block_covers_another(page):
    texts, blocks = page.evaluate(BOXES)
    assert len(texts) > 4
    assert all(len(boxes) > 5 for boxes in texts)
    assert [found for boxes in texts if (found := overlapping(boxes, 1))] == []
    for parent, several in Counter(parent for _, parent, *_ in blocks).items():
        boxes = [(tag, *box) for tag, of, *box in blocks if of == parent]
        assert len(boxes) == several
        assert overlapping(boxes, 1) == []


def test_letters_on_a_phone_are_large_enough(page):
    letters = sorted(page.evaluate(LETTERS))
    assert letters[len(letters) // 2] >= 5.5  # how wide or high a digit is, half of them being alone
    assert min(page.evaluate(SIZES)) >= 11


def test_all_text_stands_out(page):
    count, faint = page.evaluate(FAINT)
    assert count > 100
    assert faint == []


def test_what_matters_comes_first_and_the_contents_lead_there(page):
    height = page.folded
    assert height < 0.5 * page.evaluate("document.documentElement.scrollHeight")
    targets = page.evaluate("[...document.querySelectorAll('nav a')].map(a => !!document.querySelector(a.hash))")
    assert len(targets) >= 6
    assert all(targets)
    tops = page.evaluate(
        """() => ['[id$=-worth]', '[id$=-protected]', 'svg.chart', 'table', 'details'].map(
           s => document.querySelector(s).getBoundingClientRect().top)"""
    )
    assert tops == sorted(tops)
    most = page.evaluate("Math.max(...[...document.querySelectorAll('.legend')].map(legend => legend.children.length))")
    assert most == 6


def test_print_shows_what_is_folded_on_paper_white(browser, page_file):
    context = browser.new_context(viewport={"width": 700, "height": 900}, color_scheme="dark")
    page = context.new_page()
    page.emulate_media(media="print")
    page.goto(page_file.as_uri())
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("document.querySelector('details pre').checkVisibility({contentVisibilityAuto: true})")
    assert page.evaluate("document.documentElement.scrollWidth") <= 700
    context.close()
