"""What README and docs print, made again: python -m benchmarks.documentation [PAGE ...] [--write] [--all]

Without --write it says which generated parts (`<!-- generated: ... -->` to `<!-- end -->`) are not what the product
prints now, in more than the last digits, and exits with 1. With --write they are replaced. --all includes what is
marked `slow: true`: tables of scenarios that take minutes or need data (--data-dir, or FEDERATION_DATA). Runs lie in
runs/NAME, where `federation run NAME` leaves them; one that is there is not repeated: remove it to measure anew.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.common import command_line
from benchmarks.documentation.blocks import Block, differ, rewritten
from benchmarks.documentation.contents import Runs, content

ROOT = Path(__file__).resolve().parents[2]
TOLERANCE = 0.03


def pages(root: Path) -> list[Path]:
    """README.md and all pages of docs."""
    found = [path for path in (root / "docs").rglob("*.md") if "_build" not in path.parts]
    return [root / "README.md", *sorted(found)]


def stale(path: Path, runs: Runs, slow: bool, write: bool) -> list[Block]:
    """The blocks of a page that say something else now; with `write` the page has them afterwards."""
    text = path.read_text(encoding="utf-8")
    found: list[Block] = []

    def now(block: Block) -> str:
        if block.slow and not slow:
            return block.content
        new = content(block, runs)
        if differ(block.content, new, TOLERANCE):
            found.append(block)
        return new

    new = rewritten(text, now)
    if write and new != text:
        path.write_text(new, encoding="utf-8")
    return found


def main() -> None:
    """Compare, or write."""
    parser = command_line(__doc__, write=False, all=False)
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE")
    chosen = parser.parse_args()
    runs = Runs(ROOT / "runs", ROOT / "docs", chosen.data_dir)
    old = 0
    for path in [page.resolve() for page in chosen.pages] or pages(ROOT):
        for block in stale(path, runs, chosen.all, chosen.write):
            old += 1
            print(f"{path.relative_to(ROOT)}: {block.kind} {dict(block.settings)}")
    if old:
        print(f"{old} {'replaced' if chosen.write else 'stale; --write replaces them'}")
    sys.exit(1 if old and not chosen.write else 0)


if __name__ == "__main__":
    main()
