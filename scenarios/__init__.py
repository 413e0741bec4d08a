"""The rim: scenario files, data sets, runs, figures and the command line.

`run` is the entry point for Python: `scenarios.run({...}).results`. It raises `IncompleteRunError`, which holds the run
as `run`, where some variants failed.
"""

from __future__ import annotations

from typing import Any

__all__ = ["IncompleteRunError", "run"]


def __getattr__(name: str) -> Any:
    # Resolved on first use, so that `federation --help` starts without numpy.
    if name in __all__:
        from scenarios.runs import runner

        return getattr(runner, name)
    raise AttributeError(f"module 'scenarios' has no attribute '{name}'")
