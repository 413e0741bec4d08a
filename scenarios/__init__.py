"""The rim: scenario files, data sets, runs, figures and the command line.

`run` is the entry point for Python: `scenarios.run({...}).results`.
"""

from __future__ import annotations

from typing import Any

__all__ = ["run"]


def __getattr__(name: str) -> Any:
    # Resolved on first use, so that `federation --help` starts without numpy.
    if name == "run":
        from scenarios.runner import run

        return run
    raise AttributeError(f"module 'scenarios' has no attribute '{name}'")
