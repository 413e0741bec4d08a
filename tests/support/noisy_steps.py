"""The protocol `noisy_steps` of `tests/plugins/complete`, installed in this process."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from types import ModuleType

COMPLETE = Path(__file__).resolve().parents[1] / "plugins" / "complete"


def install(monkeypatch, folder: Path) -> ModuleType:
    """Make the package importable, with its entry points, as an installer would; returns its module `protocol`."""
    known = tomllib.loads((COMPLETE / "pyproject.toml").read_text())["project"]
    written = folder / "class_sums-1.dist-info"
    written.mkdir()
    (written / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {known['name']}\nVersion: {known['version']}\n")
    lines = []
    for group, entries in known["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
    (written / "entry_points.txt").write_text("\n".join(lines) + "\n")
    for path in (COMPLETE, folder):
        monkeypatch.syspath_prepend(str(path))
    from noisy_steps import protocol

    return sys.modules[protocol.__name__]
