"""Plain values as YAML text, in the styles that people write, whatever there is in them."""

from __future__ import annotations

import json
import math
import random
from typing import Any

_FLOW = 0.15  # how often a part is on one line


def written(value: Any, source: random.Random | None = None, indent: int = 0) -> str:
    """YAML of a tree; `source` chooses among styles. Keys and texts are quoted unless they are plain words."""
    flow = source is not None and source.random() < _FLOW
    if flow or not isinstance(value, dict | list) or not value:
        return f"{_inline(value)}\n"
    pad, parts = "  " * indent, []
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in entries:
        head = f"{pad}{_inline(key)}:" if isinstance(value, dict) else f"{pad}-"
        inner = written(one, source, indent + 1)
        nested = isinstance(one, dict | list) and one and inner.startswith("  " * (indent + 1))
        parts.append(f"{head}\n{inner}" if nested else f"{head} {inner}")
    return "".join(parts)


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_inline(key)}: {_inline(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    if isinstance(value, str) and value.isidentifier() and value.lower() not in ("true", "false", "null"):
        return value
    return json.dumps(value, ensure_ascii=not isinstance(value, str) or not value.isprintable())
