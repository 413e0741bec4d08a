"""The protocol `noisy_steps` of `tests/plugins/complete`, installed in this process."""

import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from parties import app
from parties.guard import answering

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

    _serve_new_kinds()
    return sys.modules[protocol.__name__]


def _serve_new_kinds() -> None:
    """Register the package's queries with the client app, which another test of this process may have loaded before."""
    for kind in answering.kinds():
        with suppress(ValueError):  # it is registered already
            app.app.query(kind)(app._handler(kind))
