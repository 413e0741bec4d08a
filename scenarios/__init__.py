"""The rim: scenario files, data sets, runs, figures and the command line.

`run` is the entry point for Python: `scenarios.run({...}).results`. It raises `IncompleteRunError`, which holds the run
as `run`, where some variants failed. `load` gives a released model as an estimator.
"""

from typing import Any

from federation.contract.errors import BudgetExceededError, FederationError, InputError, QuorumError
from federation.contract.plugins import PublicNames

_PUBLIC = PublicNames(
    __name__,
    {
        "runs.runner": "IncompleteRunError run",
        "runs.finished_run": "Run log_to_mlflow",
        "scores.estimators": "load",
        "settings.schema": "Scenario resolve",
    },
)
__all__ = [*_PUBLIC.all, "BudgetExceededError", "FederationError", "InputError", "QuorumError"]


def __getattr__(name: str) -> Any:
    return _PUBLIC.load(name)  # on first use, so that `federation --help` starts without numpy


def __dir__() -> list[str]:
    return __all__
