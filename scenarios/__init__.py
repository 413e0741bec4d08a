"""The rim: scenario files, data sets, runs, figures and the command line.

`run` is the entry point for Python: `scenarios.run({...}).results`. It raises `IncompleteRunError`, which holds the run
as `run`, where some variants failed. `load` gives a released model as an estimator.
"""

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
__getattr__, __dir__ = _PUBLIC.load, __all__.copy  # loaded on first use: `federation --help` needs no numpy
