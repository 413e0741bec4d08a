"""Pages that tell what is so no longer are found, and mended."""

from pathlib import Path

from benchmarks.documentation.__main__ import ROOT, pages, stale
from benchmarks.documentation.contents import Runs

PAGE = """<!-- generated: output {command: federation validate quickstart, from: 2, to: 2} -->
old
<!-- end -->
<!-- generated: table {run: har-published, slow: true, columns: [1], rows: {soft_vote: default}} -->
kept
<!-- end -->
"""


def test_a_stale_part_is_found_and_with_write_replaced_once(tmp_path: Path) -> None:
    page, runs = tmp_path / "page.md", Runs(tmp_path, tmp_path)
    page.write_text(PAGE)
    [found] = stale(page, runs, slow=False, write=False)
    assert (found.kind, page.read_text()) == ("output", PAGE)
    stale(page, runs, slow=False, write=True)
    assert "sweep: none" in page.read_text()
    assert "kept" in page.read_text()  # slow parts are left as they are
    assert stale(page, runs, slow=False, write=True) == []


def test_all_pages_are_looked_at() -> None:
    found = {str(path.relative_to(ROOT)) for path in pages(ROOT)}
    assert {"README.md", "docs/index.md", "docs/protocols/soft_vote.md"} <= found
    assert not any("_build" in path for path in found)
