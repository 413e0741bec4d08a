"""Parts of pages that are printed by the product, and fences that are followed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.documentation.blocks import Block, Fence, blocks, commands, differ, fences, rewritten

PAGE = """# Title

<!-- generated: table
run: quickstart
rows: {soft_vote: default}
slow: true
-->
| old |
<!-- end -->

<!-- not run: it takes long -->
```sh
federation run scale
```

<!-- generated: verdict {run: quickstart} -->
```text
printed
```
<!-- end -->

```python
x = 1
```
"""


def test_blocks_have_kind_settings_and_what_stood_there() -> None:
    first, second = blocks(PAGE)
    assert first == Block("table", {"run": "quickstart", "rows": {"soft_vote": "default"}, "slow": True}, "| old |\n")
    assert (first.slow, second.slow, second.kind) == (True, False, "verdict")


def test_nothing_but_the_content_of_blocks_is_rewritten() -> None:
    new = rewritten(PAGE, lambda block: block.kind.upper())
    assert new == PAGE.replace("| old |", "TABLE").replace("```text\nprinted\n```", "VERDICT")
    assert rewritten(new, lambda block: block.kind.upper()) == new


def test_fences_within_blocks_are_no_fences_of_the_page() -> None:
    assert fences(PAGE) == [
        Fence("sh", "federation run scale\n", "it takes long"),
        Fence("python", "x = 1\n", ""),
    ]


def test_comments_are_no_commands_and_quoted_signs_stay() -> None:
    fence = Fence("sh", "# first\nfederation list  # all\n\nfederation run x --set 'a={b: 1}' \\\n  --json\n", "")
    assert [line.split()[1] for line in commands(fence)] == ["list", "run"]
    assert commands(fence)[1].endswith("--json")


@pytest.mark.parametrize(
    ("old", "new", "different"),
    [
        ("| .84 | a |", "|  .85 |  a |", False),
        ("| .84 | a |", "| .95 | a |", True),
        ("| .84 | a |", "| .84 | b |", True),
        ("| .84 | a |", "| .84 | .84 | a |", True),
        ("ends", "ends\n", False),
    ],
)
def test_last_digits_and_spaces_make_no_difference(old: str, new: str, different: bool) -> None:
    assert differ(old, new, 0.03) is different


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_numbers_differ_symmetrically_beyond_the_tolerance(one: float, other: float) -> None:
    near = abs(round(one, 3) - round(other, 3)) <= 0.03 * (1 + round(one, 3))
    assert differ(f"{one:.3f}", f"{other:.3f}", 0.03) is not near
